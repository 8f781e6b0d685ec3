package mqlake.it;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** The line to the program that started this JVM: a message a line, its words separated by tabs. */
public final class Harness {
    private static final PrintStream OUT = System.out;
    private static final BufferedReader IN =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    private Harness() {
    }

    /** Keeps standard output for the messages; tests that print do so to standard error. */
    public static void begin() {
        System.setOut(System.err);
    }

    public static synchronized void tell(String... words) {
        StringBuilder line = new StringBuilder();
        for (String word : words) {
            line.append(line.length() == 0 ? "" : "\t").append(word.replaceAll("[\\t\\r\\n]+", " "));
        }
        OUT.println(line);
        OUT.flush();
    }

    /** Tells, and waits until that has been done. */
    public static synchronized void demand(String... words) {
        tell(words);
        try {
            String answer = IN.readLine();
            if (!"done".equals(answer)) {
                throw new IllegalStateException(String.join(" ", words) + ": " + answer);
            }
        } catch (IOException broken) {
            throw new UncheckedIOException(broken);
        }
    }
}
