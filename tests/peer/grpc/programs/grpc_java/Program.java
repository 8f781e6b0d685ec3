import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * RocketMQ's gRPC client for Java, which does what its input asks.
 *
 * Program ENDPOINT: the lines of its input and output are those of ../python/main.py.
 */
public final class Program {
    private static final Gson GSON = new GsonBuilder().serializeNulls().create();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        Operations operations = new Operations(arguments[0]);
        ExecutorService threads = Executors.newCachedThreadPool();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null;) {
            JsonObject wanted = GSON.fromJson(line, JsonObject.class);
            threads.execute(() -> {
                String answer = GSON.toJson(answer(operations, wanted));
                synchronized (answers) {
                    answers.println(answer);
                    answers.flush();
                }
            });
        }
        // Clients leave threads behind that would keep the process alive.
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> answer(Operations operations, JsonObject wanted) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("n", wanted.get("n").getAsLong());
        try {
            answer.put("is", operations.run(wanted.get("do").getAsString(), wanted));
        } catch (Throwable thrown) {
            answer.put("error", failure(thrown));
        }
        return answer;
    }

    private static Map<String, Object> failure(Throwable thrown) {
        while ((thrown instanceof CompletionException || thrown instanceof InvocationTargetException)
                && thrown.getCause() != null) {
            thrown = thrown.getCause();
        }
        Map<String, Object> failure = new LinkedHashMap<>();
        String text = String.valueOf(thrown.getMessage());
        failure.put("kind", thrown.getClass().getSimpleName());
        failure.put("code", code(text));
        failure.put("text", text);
        return failure;
    }

    /** The client has the code of the answer in the text of its exceptions only. */
    private static Integer code(String text) {
        var found = java.util.regex.Pattern.compile("response-code=(\\d+)").matcher(text);
        return found.find() ? Integer.valueOf(found.group(1)) : null;
    }
}
