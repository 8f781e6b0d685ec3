import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Questions about one queue: where it starts and ends, what lies at a time, a key, an id, an offset. */
final class Offsets implements Features.Feature {
    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(1);
        var producer = rig.producer();
        List<SendResult> sent = new ArrayList<>();
        for (int number = 0; number < 10; number++) {
            var message = Rig.message(rig.topic, "TagA", "body " + number);
            message.setKeys("key" + number + " both");
            sent.add(producer.send(message));
            Thread.sleep(5);
        }
        MessageQueue queue = sent.get(0).getMessageQueue();
        var consumer = rig.pull("G_" + rig.topic);
        Rig.until("ten messages", () -> consumer.maxOffset(queue) == 10);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("min", consumer.minOffset(queue));
        answer.put("max", consumer.maxOffset(queue));
        Rig.until("all keys", () -> byKey(rig, "both").size() >= 10);
        MessageExt fourth = byKey(rig, "key4").get(0);
        answer.put("by key", Rig.body(fourth));
        answer.put("by shared key", byKey(rig, "both").size());
        answer.put("at its time", consumer.searchOffset(queue, fourth.getStoreTimestamp()));
        answer.put("after its time", consumer.searchOffset(queue, fourth.getStoreTimestamp() + 1));
        answer.put("before all", consumer.searchOffset(queue, 1));
        answer.put("after all", consumer.searchOffset(queue, System.currentTimeMillis() + 60_000));
        MessageExt first = consumer.viewMessage(rig.topic, sent.get(0).getOffsetMsgId());
        answer.put("by offset id", Rig.body(first));
        answer.put("by unique id", Rig.body(consumer.viewMessage(rig.topic, sent.get(5).getMsgId())));
        answer.put("earliest", consumer.earliestMsgStoreTime(queue) == first.getStoreTimestamp());
        PullResult pulled = consumer.pull(queue, "*", 3, 4);
        List<String> bodies = new ArrayList<>();
        pulled.getMsgFoundList().forEach(message -> bodies.add(Rig.body(message)));
        answer.put("pulled", bodies);
        answer.put("next", pulled.getNextBeginOffset());
        answer.put("status", pulled.getPullStatus().name());
        answer.put("too far", consumer.pull(queue, "*", 99, 4).getPullStatus().name());
        answer.put("at the end", consumer.pull(queue, "*", 10, 4).getPullStatus().name());
        consumer.updateConsumeOffset(queue, 7);
        consumer.getOffsetStore().persist(queue);
        // Clients of 5.x send a commit in another thread, and may ask before they do.
        Rig.until("the commit", () -> consumer.fetchConsumeOffset(queue, true) == 7);
        answer.put("committed", consumer.fetchConsumeOffset(queue, true));
        try {
            producer.send(rig.message("no such queue"), new MessageQueue(rig.topic, queue.getBrokerName(), 9));
        } catch (MQBrokerException error) {
            answer.put("no such queue", error.getResponseCode());
        }
        return answer;
    }

    private static List<MessageExt> byKey(Rig rig, String key) {
        try {
            return rig.producer().queryMessage(rig.topic, key, 32, 0, Long.MAX_VALUE).getMessageList();
        } catch (Exception notYet) {
            return List.of();
        }
    }
}
