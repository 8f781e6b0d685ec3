import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.MessageListener;
import org.apache.rocketmq.client.apis.message.MessageView;

/** Collects messages; "fail 2 ..." fails twice, and then succeeds. */
final class Seen implements MessageListener {
    private static final int SHOWN = 200; // bytes; of a longer body, its length and digest
    private final List<Map<String, Object>> messages = new ArrayList<>();
    private final Map<String, Integer> counts = new HashMap<>();

    @Override
    public ConsumeResult consume(MessageView message) {
        Map<String, Object> described = described(message);
        String body = body(message);
        int count;
        synchronized (this) {
            messages.add(described);
            count = counts.merge(body, 1, Integer::sum);
        }
        String[] words = body.split(" ");
        boolean isRefused = words[0].equals("fail") && count <= Integer.parseInt(words[1]);
        return isRefused ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
    }

    /** Returns the messages from a number of them on. */
    synchronized List<Map<String, Object>> from(int begin) {
        return new ArrayList<>(messages.subList(begin, messages.size()));
    }

    static String body(MessageView message) {
        ByteBuffer body = message.getBody().duplicate();
        if (body.remaining() <= SHOWN) {
            return StandardCharsets.UTF_8.decode(body).toString();
        }
        try {
            int length = body.remaining();
            MessageDigest digest = MessageDigest.getInstance("SHA-1");
            digest.update(body);
            StringBuilder hex = new StringBuilder();
            for (byte each : digest.digest()) {
                hex.append(String.format("%02x", each));
            }
            return length + " bytes " + hex.substring(0, 10);
        } catch (Exception impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    static Map<String, Object> described(MessageView message) {
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("topic", message.getTopic());
        described.put("body", body(message));
        described.put("id", message.getMessageId().toString());
        described.put("tag", message.getTag().orElse(null));
        described.put("keys", new TreeSet<>(message.getKeys()));
        described.put("properties", message.getProperties());
        described.put("group", message.getMessageGroup().orElse(null));
        described.put("lite", message.getLiteTopic().orElse(null));
        described.put("priority", message.getPriority().orElse(null));
        described.put("attempt", message.getDeliveryAttempt());
        described.put("born_host", !message.getBornHost().isEmpty());
        described.put("at", System.currentTimeMillis() / 1000.0);
        return described;
    }
}
