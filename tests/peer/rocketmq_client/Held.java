import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/** A producer that has sent forty messages and a consumer that has consumed them; both stay. */
final class Held {
    private static final int COUNT = 40;

    private final Rig rig;
    private final Map<String, Object> last = new LinkedHashMap<>();

    Held(String names, String topic, String group, String producers) throws Exception {
        rig = new Rig(names, topic);
        rig.awaitTopic(4);
        var producer = rig.producer(producers);
        // Otherwise brokers know of a producer a second after its start.
        producer.getDefaultMQProducerImpl().getmQClientFactory().sendHeartbeatToAllBrokerWithLock();
        var queues = producer.fetchPublishMessageQueues(topic);
        queues.sort(null);
        SendResult sent = null;
        for (int number = 0; number < COUNT; number++) {
            var body = ("matrix body " + number).getBytes();
            sent = producer.send(new Message(topic, "TagA", "mk" + number, body), queues.get(number % 4));
        }
        var collected = new Collected();
        var consumer = rig.consumer(group);
        consumer.subscribe(topic, "*");
        collected.listen(consumer);
        consumer.start();
        collected.await(COUNT);
        var offsets = consumer.getDefaultMQPushConsumerImpl().getOffsetStore();
        for (var queue : queues) {
            Rig.until("commits", () -> {
                consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
                return offsets.readOffset(queue, ReadOffsetType.READ_FROM_STORE) == COUNT / 4;
            });
        }
        last.put("unique", sent.getMsgId());
        last.put("offset", sent.getOffsetMsgId());
        last.put("client", consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId());
    }

    Map<String, ?> last() {
        return last;
    }

    void close() {
        rig.close();
    }
}
