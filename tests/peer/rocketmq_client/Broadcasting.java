import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;

/** Two consumers of one group that each get everything. */
final class Broadcasting implements Features.Feature {
    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(4);
        for (int number = 0; number < 20; number++) {
            rig.producer().send(rig.message("to all " + number));
        }
        var first = consume(rig);
        var second = consume(rig);
        first.await(20);
        second.await(20);
        return Map.of("first", first.bodies(), "second", second.bodies());
    }

    private static Collected consume(Rig rig) throws Exception {
        var collected = new Collected();
        var consumer = rig.consumer("G_" + rig.topic);
        broadcast(consumer);
        consumer.subscribe(rig.topic, "*");
        collected.listen(consumer);
        consumer.start();
        return collected;
    }

    /** Sets the message model, an enum whose package differs between releases. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    static void broadcast(DefaultMQPushConsumer consumer) throws Exception {
        for (var method : DefaultMQPushConsumer.class.getMethods()) {
            if (method.getName().equals("setMessageModel")) {
                method.invoke(consumer, Enum.valueOf((Class) method.getParameterTypes()[0], "BROADCASTING"));
            }
        }
    }
}
