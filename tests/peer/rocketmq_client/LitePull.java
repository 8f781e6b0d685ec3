import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Lite pull, subscribed with offsets committed by hand, and assigned with a seek. */
final class LitePull implements Features.Feature {
    private static final int COUNT = 40;
    private static final Set<String> LAST = Set.of("old 36", "old 37", "old 38", "old 39");

    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(4);
        String group = "G_" + rig.topic;
        Map<String, Object> answer = new LinkedHashMap<>();
        send(rig, "old");
        var first = subscribed(rig, group);
        answer.put("first", poll(first, COUNT));
        first.commitSync();
        List<Long> committed = new ArrayList<>();
        for (MessageQueue queue : first.fetchMessageQueues(rig.topic)) {
            Rig.until("a commit", () -> first.committed(queue) == COUNT / 4);
            committed.add(first.committed(queue));
        }
        answer.put("committed", committed);
        first.shutdown();
        send(rig, "new");
        var second = subscribed(rig, group);
        answer.put("second", poll(second, COUNT));

        // A task that is about to pull takes the offset of a seek that cancels it, and the seek is lost:
        // none pulls until all seeks are done.
        var third = rig.litePull("A_" + rig.topic);
        third.setAutoCommit(false);
        List<MessageQueue> queues = rig.producer().fetchPublishMessageQueues(rig.topic);
        third.assign(queues);
        third.pause(queues);
        third.start();
        for (MessageQueue queue : queues) {
            third.seek(queue, COUNT / 4 - 1);
        }
        third.resume(queues);
        Set<String> sought = new HashSet<>();
        Rig.until("what was sought", () -> {
            third.poll(500).forEach(message -> sought.add(Rig.body(message)));
            return sought.stream().filter(body -> body.startsWith("new") || LAST.contains(body)).count() == COUNT + 4;
        });
        answer.put("sought", sought);
        return answer;
    }

    private static DefaultLitePullConsumer subscribed(Rig rig, String group) throws Exception {
        var consumer = rig.litePull(group);
        consumer.setAutoCommit(false);
        consumer.subscribe(rig.topic, "*");
        consumer.start();
        return consumer;
    }

    private static void send(Rig rig, String what) throws Exception {
        var queues = rig.producer().fetchPublishMessageQueues(rig.topic);
        for (int number = 0; number < COUNT; number++) {
            rig.producer().send(rig.message(what + " " + number), queues.get(number % 4));
        }
    }

    private static Set<String> poll(DefaultLitePullConsumer consumer, int count) throws Exception {
        Set<String> bodies = new HashSet<>();
        Rig.until("lite pull", () -> {
            for (MessageExt message : consumer.poll(500)) {
                bodies.add(Rig.body(message));
            }
            return bodies.size() >= count;
        });
        return bodies;
    }
}
