import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The programs of rocketmq-example as they are shipped: their main methods, and what they print. */
final class Examples {
    private final Printed printed;

    Examples(Printed printed) {
        this.printed = printed;
    }

    /** Each list: a text, how often it must be printed, and classes to start one after the other. */
    Map<String, ?> all(String[][] wanted) throws Exception {
        Map<String, Object> answers = new LinkedHashMap<>();
        for (String[] each : wanted) {
            answers.put(each[each.length - 1], run(each[0], Integer.parseInt(each[1]), Arrays.copyOfRange(each, 2, each.length)));
        }
        return answers;
    }

    private String run(String text, int times, String[] names) throws Exception {
        ByteArrayOutputStream output = printed.begin();
        List<Thread> threads = new ArrayList<>();
        for (String name : names) {
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
            threads.add(thread);
            thread.join(3000);
        }
        Rig.until(text, () -> output.toString(StandardCharsets.UTF_8).split(text, -1).length > times);
        return output.toString(StandardCharsets.UTF_8);
    }
}
