import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** The programs of rocketmq-example as they are shipped: their main methods, and what they print. */
final class Examples {
    /** Programs that end are done within this time; the others serve until the process ends. */
    private static final int MILLISECONDS = 5000;

    private final Printed printed;

    Examples(Printed printed) {
        this.printed = printed;
    }

    /** Each list: a name, a text, how often it must be printed, and classes to run one after the other. */
    Map<String, ?> all(String[][] wanted) throws Exception {
        var threads = Executors.newCachedThreadPool();
        Map<String, Future<String>> running = new LinkedHashMap<>();
        for (String[] each : wanted) {
            String[] classes = Arrays.copyOfRange(each, 3, each.length);
            running.put(each[0], threads.submit(() -> run(each[1], Integer.parseInt(each[2]), classes)));
        }
        Map<String, Object> answers = new LinkedHashMap<>();
        for (var each : running.entrySet()) {
            answers.put(each.getKey(), each.getValue().get());
        }
        threads.shutdown();
        return answers;
    }

    /** Returns what was printed once the text was printed so often, or never will be. */
    private String run(String text, int times, String[] classes) throws Exception {
        ByteArrayOutputStream output = printed.begin();
        for (String name : classes) {
            var main = Class.forName("org.apache.rocketmq.example." + name).getMethod("main", String[].class);
            var thread = new Thread(() -> {
                try {
                    main.invoke(null, (Object) new String[0]);
                } catch (Exception error) {
                    error.printStackTrace();
                }
            });
            thread.setDaemon(true);
            thread.start();
            thread.join(MILLISECONDS);
        }
        try {
            Rig.until(text, () -> output.toString(StandardCharsets.UTF_8).split(text, -1).length > times);
        } catch (IllegalStateException late) {
            output.writeBytes((late.getMessage() + "\n").getBytes(StandardCharsets.UTF_8));
        }
        return output.toString(StandardCharsets.UTF_8);
    }
}
