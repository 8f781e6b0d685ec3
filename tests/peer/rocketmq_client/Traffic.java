import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;

/** Messages to given queues, a group that lags by given offsets, and a dead letter. */
final class Traffic {
    private static final int QUEUES = 4;

    static Map<String, ?> send(String names, String topic, int count) throws Exception {
        try (Rig rig = new Rig(names, topic)) {
            send(rig, count);
        }
        return Map.of();
    }

    /** Sends messages, and commits the offset 2 in each queue for a group that has no members. */
    static Map<String, ?> lag(String names, String topic, String group, int count) throws Exception {
        try (Rig rig = new Rig(names, topic)) {
            send(rig, count);
            var consumer = rig.pull(group);
            var offsets = consumer.getDefaultMQPullConsumerImpl().getOffsetStore();
            for (var queue : consumer.fetchSubscribeMessageQueues(topic)) {
                offsets.updateConsumeOffsetToBroker(queue, 2, false);
            }
        }
        return Map.of();
    }

    /** Sends one message that fails twice, and consumes the dead letter that comes of it. */
    static Map<String, ?> die(String names, String topic, String group) throws Exception {
        try (Rig rig = new Rig(names, topic)) {
            rig.awaitTopic(QUEUES);
            var consumer = rig.consumer(group);
            consumer.subscribe(topic, "*");
            consumer.setMaxReconsumeTimes(1);
            consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
                context.setDelayLevelWhenNextConsume(1);
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            });
            consumer.start();
            send(rig, 1);
            String dead = "%DLQ%" + group;
            Rig.until("a dead-letter queue", () -> rig.isKnown(dead, 1));
            var letters = new Collected();
            var undertaker = rig.consumer("D_" + topic);
            undertaker.subscribe(dead, "*");
            letters.listen(undertaker);
            undertaker.start();
            letters.await(1);
            return Map.of("dead", letters.bodies());
        }
    }

    private static void send(Rig rig, int count) throws Exception {
        rig.awaitTopic(QUEUES);
        var queues = new TreeSet<>(rig.producer().fetchPublishMessageQueues(rig.topic)).toArray(
            new org.apache.rocketmq.common.message.MessageQueue[0]);
        for (int number = 0; number < count; number++) {
            rig.producer().send(Rig.message(rig.topic, "TagA", "traffic " + number), queues[number % QUEUES]);
        }
    }
}
