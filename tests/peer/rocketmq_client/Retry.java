import java.util.Map;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;

/** Messages that fail come again from the retry topic, then go to the dead-letter queue. */
final class Retry implements Features.Feature {
    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(2);
        String group = "G_" + rig.topic;
        var attempts = new Collected();
        var consumer = rig.consumer(group);
        consumer.subscribe(rig.topic, "*");
        consumer.setMaxReconsumeTimes(2);
        consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
            batch.forEach(attempts::add);
            context.setDelayLevelWhenNextConsume(1);
            boolean isGood = batch.stream().allMatch(message -> Rig.body(message).startsWith("good")
                || Rig.body(message).startsWith("once") && message.getReconsumeTimes() > 0);
            return isGood ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        consumer.start();
        for (String body : new String[] {"good", "once", "never"}) {
            rig.producer().send(Rig.message(rig.topic, "TagA", body));
        }
        String dead = "%DLQ%" + group;
        Rig.until("a dead-letter queue", () -> rig.isKnown(dead, 1));
        var letters = new Collected();
        var undertaker = rig.consumer("D_" + rig.topic);
        undertaker.subscribe(dead, "*");
        letters.listen(undertaker);
        undertaker.start();
        letters.await(1);
        return Map.of("attempts", attempts.all(), "dead", letters.all());
    }
}
