import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;

/** Answers requests, one a line on standard input, with one JSON object a line on standard output. */
public final class Peer {
    public static void main(String[] arguments) throws Exception {
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String answer;
            try {
                answer = answer(line.split("\t"));
            } catch (Exception error) {
                answer = String.format("{\"error\": \"%s\"}", error.toString().replaceAll("[\"\\\\\\s]+", " "));
            }
            System.out.println(answer);
        }
        // Clients leave threads behind that would keep the process alive.
        Runtime.getRuntime().halt(0);
    }

    private static String answer(String[] request) throws Exception {
        switch (request[0]) {
            case "create":
                return Topics.create(request[1], request[2], request[3]);
            case "produce":
                return Produce.run(request[1], request[2], Integer.parseInt(request[3]), request[4]);
            case "consume":
                return Consume.run(request[1], request[2], request[3], request[4]);
            case "end-offset":
                return Consume.endOffset(request[1], request[2]);
            case "recover":
                return Recover.run(request[1], Integer.parseInt(request[2]));
            case "version":
                return String.format("{\"java\": \"%s %s\", \"kafka\": \"%s\"}",
                    System.getProperty("java.vm.name"), System.getProperty("java.runtime.version"),
                    kafkaVersion());
            default:
                throw new IllegalArgumentException("unknown request " + request[0]);
        }
    }

    private static String kafkaVersion() throws Exception {
        var properties = new Properties();
        try (var file = Peer.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            properties.load(file);
        }
        return properties.getProperty("version");
    }
}
