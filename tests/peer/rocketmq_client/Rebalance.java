import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;

/** A second consumer joins a group and leaves it again; each tells how many queues it has. */
final class Rebalance implements Features.Feature {
    private static final int EACH = 40;

    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(4);
        var first = new Collected();
        var second = new Collected();
        var stays = consumer(rig, first);
        stays.start();
        Map<String, Object> answer = new LinkedHashMap<>();
        send(rig, "alone");
        first.await(EACH);
        answer.put("alone", queues(rig, stays));

        var leaves = consumer(rig, second);
        leaves.start();
        Rig.until("two queues each", () -> queues(rig, stays) == 2 && queues(rig, leaves) == 2);
        send(rig, "together");
        Rig.until("all of both", () -> {
            var both = first.distinct();
            both.addAll(second.distinct());
            return both.size() >= 2 * EACH;
        });
        answer.put("first", first.all());
        answer.put("second", second.all());

        leaves.shutdown();
        Rig.until("all queues again", () -> queues(rig, stays) == 4);
        int before = first.distinct().size();
        send(rig, "again");
        first.await(before + EACH);
        answer.put("last", first.bodies());
        return answer;
    }

    private static void send(Rig rig, String what) throws Exception {
        for (int number = 0; number < EACH; number++) {
            rig.producer().send(rig.message(what + " " + number));
        }
    }

    private static DefaultMQPushConsumer consumer(Rig rig, Collected collected) throws Exception {
        var consumer = rig.consumer("G_" + rig.topic);
        consumer.subscribe(rig.topic, "*");
        collected.listen(consumer);
        return consumer;
    }

    private static long queues(Rig rig, DefaultMQPushConsumer consumer) {
        var table = consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable();
        return table.keySet().stream().filter(queue -> queue.getTopic().equals(rig.topic)).count();
    }
}
