import java.util.Map;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;

/** Shards, each in one queue, consumed in order by two consumers; one refuses each shard's third message once. */
final class Ordered implements Features.Feature {
    private static final int SHARDS = 6;
    private static final int EACH = 10;

    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(4);
        for (int number = 0; number < EACH; number++) {
            for (int shard = 0; shard < SHARDS; shard++) {
                var message = rig.message(shard + " " + number);
                rig.producer().send(message, new SelectMessageQueueByHash(), shard);
            }
        }
        var collected = new Collected();
        for (int count = 0; count < 2; count++) {
            consume(rig, collected);
        }
        collected.await(SHARDS * EACH);
        return Map.of("consumed", collected.all());
    }

    static void consume(Rig rig, Collected collected) throws Exception {
        var consumer = rig.consumer("G_" + rig.topic);
        consumer.subscribe(rig.topic, "*");
        consumer.setSuspendCurrentQueueTimeMillis(100);
        consumer.registerMessageListener((MessageListenerOrderly) (batch, context) -> {
            boolean isRefused = batch.stream()
                .anyMatch(message -> Rig.body(message).endsWith(" 3") && message.getReconsumeTimes() == 0);
            batch.forEach(collected::add);
            return isRefused ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
    }
}
