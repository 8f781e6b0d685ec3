import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;

/** What an observer sees of a cluster: for each name, a value for each of its labels. */
final class Seen {
    final Map<String, Map<String, Object>> values = new TreeMap<>();

    void add(String name, String labels, Object value) {
        values.computeIfAbsent(name, absent -> new TreeMap<>()).put(labels, value);
    }

    /** Adds what a request answers, or the class of its error. */
    void ask(String name, String labels, Callable<Object> request) {
        Object answer;
        try {
            answer = request.call();
        } catch (Exception error) {
            answer = error.getClass().getSimpleName();
        }
        add(name, labels, answer);
    }
}
