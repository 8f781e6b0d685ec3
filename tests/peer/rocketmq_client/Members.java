import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Members of consumer groups, which come and go; what they do is kept as events until it is asked for. */
final class Members {
    /** A message whose number is a multiple of this fails the first time. */
    private static final int FAILING = 31;
    private static final int POP_INVISIBLE = 10_000;

    private final Map<String, Rig> members = new ConcurrentHashMap<>();
    private final ConcurrentLinkedQueue<List<Object>> events = new ConcurrentLinkedQueue<>();

    Map<String, ?> join(String names, String mode, String topic, String group, String name) throws Exception {
        var rig = new Rig(names, topic);
        var consumer = rig.consumer(group);
        consumer.subscribe(topic, "*");
        if (mode.equals("ordered")) {
            consumer.setSuspendCurrentQueueTimeMillis(200);
            consumer.registerMessageListener((MessageListenerOrderly) (batch, context) -> {
                boolean isDone = handle(name, batch, context.getMessageQueue(), true);
                return isDone ? ConsumeOrderlyStatus.SUCCESS : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            });
        } else {
            // What fails in broadcasting does not come again.
            boolean mayFail = !mode.equals("broadcasting");
            consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
                boolean isDone = handle(name, batch, context.getMessageQueue(), mayFail);
                context.setDelayLevelWhenNextConsume(1);
                return isDone ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
            });
        }
        if (mode.equals("broadcasting")) {
            Broadcasting.broadcast(consumer);
        } else if (mode.equals("pop")) {
            set(consumer, "setClientRebalance", boolean.class, false);
            set(consumer, "setPopInvisibleTime", long.class, (long) POP_INVISIBLE);
        }
        consumer.start();
        members.put(name, rig);
        return Map.of();
    }

    Map<String, ?> leave(String name) {
        members.remove(name).close();
        return Map.of();
    }

    /** Returns what happened since the last call: time, member, what, body, id, topic, broker, queue, offset. */
    Map<String, ?> events() {
        List<List<Object>> found = new ArrayList<>();
        for (var event = events.poll(); event != null; event = events.poll()) {
            found.add(event);
        }
        return Map.of("events", found);
    }

    private boolean handle(String name, List<MessageExt> batch, MessageQueue queue, boolean mayFail) {
        boolean isDone = true;
        for (var message : batch) {
            note(name, "deliver", message, queue);
            try {
                Thread.sleep(ThreadLocalRandom.current().nextInt(4));
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
            var number = Integer.parseInt(Rig.body(message).split(" ")[0]);
            boolean fails = mayFail && number % FAILING == 0 && message.getReconsumeTimes() == 0;
            note(name, fails ? "fail" : "finish", message, queue);
            isDone &= !fails;
        }
        return isDone;
    }

    private void note(String name, String what, MessageExt message, MessageQueue queue) {
        long now = System.currentTimeMillis();
        events.add(List.of(now, name, what, Rig.body(message), message.getMsgId(), queue.getTopic(),
            queue.getBrokerName(), queue.getQueueId(), message.getQueueOffset()));
    }

    private static void set(DefaultMQPushConsumer consumer, String setter, Class<?> kind, Object value)
            throws Exception {
        DefaultMQPushConsumer.class.getMethod(setter, kind).invoke(consumer, value);
    }
}
