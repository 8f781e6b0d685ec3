import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;

/** Delay levels, and the times of 5.x in three units; a message that is taken back, by new clients. */
final class Delay implements Features.Feature {
    /** Nanoseconds within which a message is taken back for certain. */
    private static final long IN_TIME = 1_500_000_000L;

    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(4);
        var collected = new Collected();
        var consumer = rig.consumer("G_" + rig.topic);
        consumer.subscribe(rig.topic, "*");
        collected.listen(consumer);
        consumer.start();
        List<Map<String, ?>> sent = new ArrayList<>();
        for (int level = 0; level < 3; level++) {
            Message message = rig.message("level " + level);
            message.setDelayTimeLevel(level);
            sent.add(send(rig, message));
        }
        sent.add(send(rig, timer(rig, "TIMER_DELAY_MS", 3500)));
        sent.add(send(rig, timer(rig, "TIMER_DELAY_SEC", 4)));
        sent.add(send(rig, timer(rig, "TIMER_DELIVER_MS", System.currentTimeMillis() + 4500)));
        List<String> overdue = new ArrayList<>();
        List<String> recalled = recall(rig, overdue);
        Rig.until("all that was sent", () -> {
            var came = collected.distinct();
            return sent.stream().allMatch(each -> came.contains(each.get("body")));
        });
        return Map.of("sent", sent, "consumed", collected.all(), "recalled", recalled, "overdue", overdue);
    }

    /**
     * Sends a message that is due before the last one, takes it back, and returns its two ids.
     *
     * One that could not be taken back in time is overdue, and another one takes its place.
     */
    private static List<String> recall(Rig rig, List<String> overdue) throws Exception {
        Method recall;
        try {
            recall = DefaultMQProducer.class.getMethod("recallMessage", String.class, String.class);
        } catch (NoSuchMethodException olderClient) {
            return List.of();
        }
        while (true) {
            Message message = rig.message("recalled " + overdue.size());
            MessageAccessor.putProperty(message, "TIMER_DELAY_MS", "3000");
            long begun = System.nanoTime();
            SendResult sent = rig.producer().send(message);
            Object handle = SendResult.class.getMethod("getRecallHandle").invoke(sent);
            try {
                return List.of(sent.getMsgId(), (String) recall.invoke(rig.producer(), rig.topic, handle));
            } catch (InvocationTargetException refused) {
                if (System.nanoTime() - begun < IN_TIME) {
                    throw refused;
                }
                overdue.add("recalled " + overdue.size());
            }
        }
    }

    private static Message timer(Rig rig, String property, long value) {
        Message message = rig.message(property);
        MessageAccessor.putProperty(message, property, Long.toString(value));
        return message;
    }

    private static Map<String, ?> send(Rig rig, Message message) throws Exception {
        String body = new String(message.getBody());
        long at = System.currentTimeMillis();
        String status = rig.producer().send(message).getSendStatus().name();
        return Map.of("body", body, "at", at, "status", status);
    }
}
