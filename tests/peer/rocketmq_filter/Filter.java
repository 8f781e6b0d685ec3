import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.filter.SqlFilter;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;

/**
 * Says what RocketMQ makes of filter expressions: true, false, null, "error" or "refused", one a line.
 *
 * Reads one a line: the expression, then name and value of each property, parted by tabs.
 */
public final class Filter {
    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(answer(line.split("\t", -1)));
        }
        answers.flush();
    }

    private static String answer(String[] words) {
        Map<String, Object> properties = new HashMap<>();
        for (int at = 1; at + 1 < words.length; at += 2) {
            properties.put(words[at], words[at + 1]);
        }
        Expression expression;
        try {
            expression = new SqlFilter().compile(words[0]);
        } catch (Throwable refused) {
            return "refused";
        }
        try {
            return String.valueOf(expression.evaluate(context(properties)));
        } catch (Throwable error) {
            return "error";
        }
    }

    private static EvaluationContext context(Map<String, Object> properties) {
        return new EvaluationContext() {
            @Override
            public Object get(String name) {
                return properties.get(name);
            }

            @Override
            public Map<String, Object> keyValues() {
                return properties;
            }
        };
    }
}
