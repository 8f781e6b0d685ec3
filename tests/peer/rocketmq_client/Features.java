import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** What clients can do: each feature runs in a thread of its own, and answers what happened. */
final class Features {
    private static final int SECONDS = 240;

    private final String names;

    Features(String names) {
        this.names = names;
    }

    interface Feature {
        Map<String, ?> run(Rig rig) throws Exception;
    }

    /** Runs each named feature on the topic beside its name. */
    Map<String, ?> all(String[][] wanted) throws Exception {
        var threads = Executors.newCachedThreadPool();
        Map<String, Future<Map<String, ?>>> running = new LinkedHashMap<>();
        for (String[] each : wanted) {
            running.put(each[0], threads.submit(() -> {
                try (Rig rig = new Rig(names, each[1])) {
                    return of(each[0]).run(rig);
                }
            }));
            Thread.sleep(5);
        }
        Map<String, Object> answers = new LinkedHashMap<>();
        for (var each : running.entrySet()) {
            try {
                answers.put(each.getKey(), each.getValue().get(SECONDS, TimeUnit.SECONDS));
            } catch (Exception error) {
                answers.put(each.getKey(), Map.of("failure", String.valueOf(error)));
            }
        }
        threads.shutdownNow();
        return answers;
    }

    private static Feature of(String name) {
        switch (name) {
            case "send": return new Send();
            case "rebalance": return new Rebalance();
            case "broadcasting": return new Broadcasting();
            case "ordered": return new Ordered();
            case "ordered globally": return new OrderedGlobally();
            case "delay": return new Delay();
            case "transactions": return new Transactions();
            case "retry": return new Retry();
            case "request and reply": return new RequestReply();
            case "tags": return new Tags();
            case "sql": return new Sql();
            case "lite pull": return new LitePull();
            case "pop": return new Pop();
            case "trace": return new Trace();
            case "offsets": return new Offsets();
            case "endure": return new Endure();
            default: throw new IllegalArgumentException("unknown feature " + name);
        }
    }
}
