import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.TreeSet;

/** Loads texts that are separated by NUL, and writes names and values in hexadecimal. */
class Load {
    public static void main(String[] arguments) throws Exception {
        String all = Files.readString(Path.of(arguments[0]), StandardCharsets.UTF_8);
        StringBuilder answer = new StringBuilder();
        for (String text : all.split("\0", -1)) {
            Properties found = new Properties();
            try {
                found.load(new StringReader(text));
                for (String name : new TreeSet<>(found.stringPropertyNames())) {
                    answer.append(hex(name)).append(':');
                    answer.append(hex(found.getProperty(name).trim())).append(' ');
                }
            } catch (IllegalArgumentException malformed) {
                answer.append("malformed");
            }
            answer.append('\n');
        }
        Files.writeString(Path.of(arguments[1]), answer);
    }

    private static String hex(String text) {
        StringBuilder found = new StringBuilder();
        for (char one : text.toCharArray()) {
            found.append(String.format("%04x", (int) one));
        }
        return found.toString();
    }
}
