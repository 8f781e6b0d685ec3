import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.MessageListener;
import org.apache.rocketmq.client.apis.message.MessageView;

/** Collects messages; fails once on those whose bodies begin with "retry". */
final class Collected implements MessageListener {
    private static final Duration PATIENCE = Duration.ofSeconds(150);
    private final List<Map<String, Object>> messages = new ArrayList<>();

    @Override
    public ConsumeResult consume(MessageView message) {
        var described = describe(message);
        synchronized (this) {
            messages.add(described);
        }
        boolean isFailure = body(message).startsWith("retry") && message.getDeliveryAttempt() == 1;
        return isFailure ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
    }

    synchronized List<Map<String, Object>> all() {
        return new ArrayList<>(messages);
    }

    /** Waits for messages, each attempt of which counts once. */
    void await(int count) throws Exception {
        until(count + " messages", () -> all().stream()
            .map(each -> each.get("body") + " " + each.get("attempt")).distinct().count() >= count);
    }

    static void until(String what, Callable<Boolean> isSo) throws Exception {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!isSo.call()) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("waited in vain for " + what);
            }
            Thread.sleep(20);
        }
    }

    static String body(MessageView message) {
        return StandardCharsets.UTF_8.decode(message.getBody().duplicate()).toString();
    }

    static Map<String, Object> describe(MessageView message) {
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("body", body(message));
        described.put("id", message.getMessageId().toString());
        described.put("tag", message.getTag().orElse(null));
        described.put("keys", message.getKeys());
        described.put("properties", message.getProperties());
        described.put("group", message.getMessageGroup().orElse(null));
        described.put("attempt", message.getDeliveryAttempt());
        described.put("at", System.currentTimeMillis());
        return described;
    }
}
