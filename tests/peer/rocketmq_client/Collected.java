import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.message.MessageExt;

/** What consumers got, in the order in which they got it. */
final class Collected {
    private final List<Map<String, Object>> messages = new ArrayList<>();

    /** Listens for a consumer, and takes every message. */
    void listen(DefaultMQPushConsumer consumer) {
        consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
            batch.forEach(this::add);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
    }

    synchronized void add(MessageExt message) {
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("body", Rig.body(message));
        described.put("topic", message.getTopic());
        described.put("queue", message.getQueueId());
        described.put("offset", message.getQueueOffset());
        described.put("times", message.getReconsumeTimes());
        described.put("born", message.getBornTimestamp());
        described.put("msgId", message.getMsgId());
        described.put("properties", message.getProperties());
        described.put("at", System.currentTimeMillis());
        messages.add(described);
    }

    synchronized List<Map<String, Object>> all() {
        return new ArrayList<>(messages);
    }

    synchronized List<Object> bodies() {
        List<Object> bodies = new ArrayList<>();
        messages.forEach(message -> bodies.add(message.get("body")));
        return bodies;
    }

    /** Waits until that many different bodies have come. */
    void await(int count) throws Exception {
        Rig.until(count + " messages", () -> distinct().size() >= count);
    }

    Set<Object> distinct() {
        return new HashSet<>(bodies());
    }
}
