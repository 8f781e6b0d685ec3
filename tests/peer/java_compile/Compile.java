import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

/** Compiles one program after the other: each argument has the words of one call of javac, in lines. */
final class Compile {
    public static void main(String[] compilations) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        for (String words : compilations) {
            int code = compiler.run(null, null, null, words.split("\n"));
            if (code != 0) {
                System.exit(code);
            }
        }
    }
}
