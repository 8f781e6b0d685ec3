import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** Consumes what a topic holds, from its first message on, as a group that is new. */
final class Backlog {
    private static final int SECONDS = 120;

    private Backlog() {
    }

    /** Consumes with a push consumer: time from its first message to the last one. */
    static Map<String, Object> push(String names, String topic, String group, int count) throws Exception {
        var consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName(group);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        var begun = new AtomicReference<Stopwatch>();
        var found = new AtomicReference<Map<String, Object>>();
        var consumed = new AtomicInteger();
        var done = new CountDownLatch(1);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            if (begun.get() == null) {
                begun.compareAndSet(null, new Stopwatch());
            }
            int before = consumed.getAndAdd(messages.size());
            if (before < count && before + messages.size() >= count) {
                found.set(begun.get().measured(count));
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        try {
            if (!done.await(SECONDS, TimeUnit.SECONDS)) {
                throw new IllegalStateException("consumed " + consumed.get() + " of " + count + " messages");
            }
        } finally {
            consumer.shutdown();
        }
        return found.get();
    }

    /** Consumes with a lite pull consumer: time from its first message to the last one. */
    static Map<String, Object> litePull(String names, String topic, String group, int count) throws Exception {
        var consumer = new DefaultLitePullConsumer(group);
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName(group);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.start();
        try {
            Stopwatch begun = null;
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
            for (int consumed = 0; consumed < count; ) {
                List<MessageExt> messages = consumer.poll();
                if (begun == null && !messages.isEmpty()) {
                    begun = new Stopwatch();
                }
                consumed += messages.size();
                if (System.nanoTime() > end) {
                    throw new IllegalStateException("consumed " + consumed + " of " + count + " messages");
                }
            }
            return begun.measured(count);
        } finally {
            consumer.shutdown();
        }
    }
}
