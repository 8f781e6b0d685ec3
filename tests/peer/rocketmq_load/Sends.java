import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/** Sends messages with a stock producer, of which there is one for each name server. */
final class Sends {
    private static String producerNames;
    private static DefaultMQProducer producer;

    private Sends() {
    }

    /** Sends messages with so many sends in flight. */
    static Map<String, Object> inFlight(String names, String topic, int size, int count, int most)
        throws Exception {
        var sending = producer(names);
        byte[] body = body(size);
        var window = new Window(most);
        var stopwatch = new Stopwatch();
        for (int number = 0; number < count; number++) {
            window.enter();
            sending.send(new Message(topic, body), window);
        }
        window.leave();
        return stopwatch.measured(count);
    }

    /** Sends messages, each once the one before it was acknowledged. */
    static Map<String, Object> oneByOne(String names, String topic, int size, int count) throws Exception {
        var sending = producer(names);
        byte[] body = body(size);
        long[] latencies = new long[count];
        var stopwatch = new Stopwatch();
        for (int number = 0; number < count; number++) {
            long begun = System.nanoTime();
            requireOk(sending.send(new Message(topic, body)));
            latencies[number] = System.nanoTime() - begun;
        }
        Map<String, Object> found = stopwatch.measured(count);
        Arrays.sort(latencies);
        found.put("median", latencies[count / 2] / 1e9);
        return found;
    }

    /** Sends batches of so many messages, with so many batches in flight. */
    static Map<String, Object> batches(
        String names, String topic, int size, int count, int each, int most) throws Exception {
        var sending = producer(names);
        byte[] body = body(size);
        var window = new Window(most);
        var stopwatch = new Stopwatch();
        for (int number = 0; number < count; number += each) {
            List<Message> batch = new ArrayList<>(each);
            for (int message = 0; message < each; message++) {
                batch.add(new Message(topic, body));
            }
            window.enter();
            sending.send(batch, window);
        }
        window.leave();
        return stopwatch.measured(count);
    }

    private static DefaultMQProducer producer(String names) throws Exception {
        if (!names.equals(producerNames)) {
            if (producer != null) {
                producer.shutdown();
            }
            producer = new DefaultMQProducer("load");
            producer.setNamesrvAddr(names);
            producer.start();
            producerNames = names;
        }
        return producer;
    }

    private static byte[] body(int size) {
        byte[] body = new byte[size];
        Arrays.fill(body, (byte) 'x');
        return body;
    }

    private static void requireOk(SendResult result) {
        if (result.getSendStatus() != SendStatus.SEND_OK) {
            throw new IllegalStateException("the broker answered " + result);
        }
    }

    /** Lets so many sends be in flight. */
    private static final class Window implements SendCallback {
        private final int most;
        private final Semaphore free;
        private final AtomicReference<Throwable> failure = new AtomicReference<>();

        Window(int most) {
            this.most = most;
            free = new Semaphore(most);
        }

        void enter() throws Exception {
            free.acquire();
            requireNoFailure();
        }

        /** Waits until nothing is in flight. */
        void leave() throws Exception {
            free.acquire(most);
            requireNoFailure();
        }

        private void requireNoFailure() throws Exception {
            if (failure.get() != null) {
                throw new IllegalStateException(failure.get());
            }
        }

        @Override
        public void onSuccess(SendResult result) {
            if (result.getSendStatus() != SendStatus.SEND_OK) {
                failure.set(new IllegalStateException("the broker answered " + result));
            }
            free.release();
        }

        @Override
        public void onException(Throwable error) {
            failure.set(error);
            free.release();
        }
    }
}
