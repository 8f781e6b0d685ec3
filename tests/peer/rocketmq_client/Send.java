import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** Every way to send; a push consumer reads what came of it. */
final class Send implements Features.Feature {
    private static final int EACH = 8;

    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        var producer = rig.producer();
        producer.setCompressMsgBodyOverHowmuch(1000);
        rig.awaitTopic(4);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("sync", many(number -> producer.send(full(rig, "sync " + number, number))));
        answer.put("async", async(rig));
        for (int number = 0; number < EACH; number++) {
            producer.sendOneway(rig.message("oneway " + number));
        }
        List<Message> batch = new ArrayList<>();
        for (int number = 0; number < EACH; number++) {
            batch.add(full(rig, "batch " + number, number));
        }
        answer.put("batch", List.of(shown(producer.send(batch))));
        List<MessageQueue> queues = producer.fetchPublishMessageQueues(rig.topic);
        MessageQueue queue = Collections.max(queues);
        answer.put("selected", many(number -> producer.send(rig.message("selected " + number), queue)));
        answer.put("large", List.of(shown(producer.send(rig.message("large ".repeat(2000))))));

        var collected = new Collected();
        var consumer = rig.consumer("G_" + rig.topic);
        consumer.subscribe(rig.topic, "*");
        collected.listen(consumer);
        consumer.start();
        collected.await(5 * EACH + 1);
        answer.put("consumed", collected.all());
        return answer;
    }

    private static Message full(Rig rig, String body, int number) {
        Message message = Rig.message(rig.topic, "Tag" + number, body);
        message.setKeys("key" + number);
        message.putUserProperty("colour", "blue");
        return message;
    }

    interface Sending {
        SendResult send(int number) throws Exception;
    }

    private static List<Map<String, ?>> many(Sending sending) throws Exception {
        List<Map<String, ?>> results = new ArrayList<>();
        for (int number = 0; number < EACH; number++) {
            results.add(shown(sending.send(number)));
        }
        return results;
    }

    private static List<Map<String, ?>> async(Rig rig) throws Exception {
        List<Map<String, ?>> results = Collections.synchronizedList(new ArrayList<>());
        var done = new CountDownLatch(EACH);
        for (int number = 0; number < EACH; number++) {
            rig.producer().send(rig.message("async " + number), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    results.add(shown(result));
                    done.countDown();
                }

                @Override
                public void onException(Throwable error) {
                    results.add(Map.of("status", error.toString()));
                    done.countDown();
                }
            });
        }
        done.await(30, TimeUnit.SECONDS);
        return results;
    }

    static Map<String, ?> shown(SendResult result) {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("status", result.getSendStatus().name());
        shown.put("msgId", result.getMsgId());
        shown.put("offsetMsgId", result.getOffsetMsgId());
        shown.put("queue", result.getMessageQueue().getQueueId());
        shown.put("offset", result.getQueueOffset());
        return shown;
    }
}
