import java.util.Map;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.message.Message;

/** SQL92 over properties, filtered by the broker; and an expression that cannot be parsed. */
final class Sql implements Features.Feature {
    private static final String EXPRESSION =
        "(TAGS IS NOT NULL AND TAGS IN ('TagA', 'TagB')) AND (a BETWEEN 2 AND 6) AND colour <> 'red' AND c IS NULL";

    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(1);
        for (int number = 0; number < 10; number++) {
            for (String tag : new String[] {"TagA", "TagB", "TagC"}) {
                Message message = Rig.message(rig.topic, tag, tag + " " + number);
                message.putUserProperty("a", Integer.toString(number));
                message.putUserProperty("colour", number % 2 == 0 ? "red" : "blue");
                rig.producer().send(message);
            }
        }
        var collected = new Collected();
        var consumer = rig.consumer("G_" + rig.topic);
        consumer.subscribe(rig.topic, MessageSelector.bySql(EXPRESSION));
        collected.listen(consumer);
        consumer.start();
        collected.await(4);

        var refused = rig.consumer("B_" + rig.topic);
        refused.subscribe(rig.topic, MessageSelector.bySql("a > > 3"));
        new Collected().listen(refused);
        int code = 0;
        try {
            refused.start();
        } catch (MQClientException error) {
            code = error.getResponseCode();
        }
        return Map.of("consumed", collected.bodies(), "refused", code);
    }
}
