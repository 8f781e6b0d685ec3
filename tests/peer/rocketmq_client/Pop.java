import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;

/** Two consumers of 5.x that share all queues and acknowledge message by message; one message fails once. */
final class Pop implements Features.Feature {
    private static final int COUNT = 40;

    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(4);
        for (int number = 0; number < COUNT; number++) {
            rig.producer().send(rig.message("popped " + number));
        }
        var first = consume(rig);
        var second = consume(rig);
        Rig.until("all", () -> {
            var both = first.distinct();
            both.addAll(second.distinct());
            return both.size() >= COUNT;
        });
        Rig.until("the second time", () -> again(first) + again(second) > 0);
        return Map.of("first", first.all(), "second", second.all());
    }

    private static long again(Collected collected) {
        return collected.all().stream().filter(message -> (int) message.get("times") > 0).count();
    }

    private static Collected consume(Rig rig) throws Exception {
        var collected = new Collected();
        var consumer = rig.consumer("G_" + rig.topic);
        DefaultMQPushConsumer.class.getMethod("setClientRebalance", boolean.class).invoke(consumer, false);
        consumer.subscribe(rig.topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
            batch.forEach(collected::add);
            boolean isRefused = batch.stream()
                .anyMatch(message -> Rig.body(message).endsWith(" 7") && message.getReconsumeTimes() == 0);
            return isRefused ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return collected;
    }
}
