import com.alibaba.fastjson2.JSONObject;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;

/**
 * Puts messages with one key and one tag as fast as the store takes them, and waits until all are dispatched.
 *
 * The load: `messages` of `body` bytes, spread over `topics` with `queues` each, `perCall` a call; on `threads`
 * that wait for each answer, or, where `waiting` is given, on one thread that has that many puts unanswered.
 * Where `wait` is 0, it ends without waiting for the dispatch.
 */
final class PutLoad {
    private static final SocketAddress HOST = new InetSocketAddress("127.0.0.1", 10911);
    private static final String TAG = "TagA";
    private static final long SAMPLE_MILLISECONDS = 2;

    private final DefaultMessageStore store;
    private final byte[] body;
    private final int messages;
    private final int topics;
    private final int queues;
    private final int perCall;
    private final int threads;
    private final int waiting;
    private final boolean waitsForDispatch;
    private final List<Long> behind = new ArrayList<>();
    private final ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();

    PutLoad(DefaultMessageStore store, JSONObject load) {
        this.store = store;
        body = new byte[load.getIntValue("body")];
        new Random(1).nextBytes(body);
        messages = load.getIntValue("messages");
        topics = load.getIntValue("topics", 1);
        queues = load.getIntValue("queues", 8);
        perCall = load.getIntValue("perCall", 1);
        threads = load.getIntValue("threads", 1);
        waiting = load.getIntValue("waiting", 0);
        waitsForDispatch = load.getIntValue("wait", 1) == 1;
    }

    /** Seconds until all puts were answered and until all was dispatched; samples of the dispatch's lag between. */
    Map<String, Object> run() throws Exception {
        List<Thread> putters = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            int first = i;
            putters.add(thread(() -> {
                if (waiting > 0) {
                    putUnanswered();
                } else {
                    putAnswered(first);
                }
            }));
        }
        var watcher = thread(this::watch);
        long begin = System.nanoTime();
        watcher.start();
        putters.forEach(Thread::start);
        for (Thread putter : putters) {
            putter.join();
        }
        double put = (System.nanoTime() - begin) / 1e9;
        long behindBytes = store.dispatchBehindBytes();
        watcher.interrupt();
        watcher.join();
        if (waitsForDispatch) {
            OpenStore.waitUntilDispatched(store);
        }
        double dispatched = (System.nanoTime() - begin) / 1e9;
        if (!failures.isEmpty()) {
            throw new IllegalStateException(failures.peek());
        }
        return Map.of("seconds", put, "dispatched", dispatched, "behindBytes", behindBytes,
            "behindMilliseconds", behind);
    }

    private interface Work {
        void run() throws Exception;
    }

    private Thread thread(Work work) {
        return new Thread(() -> {
            try {
                work.run();
            } catch (Throwable failure) {
                failures.add(failure);
            }
        });
    }

    private void putAnswered(int thread) {
        int step = threads * perCall;
        for (int first = thread * perCall; first < messages; first += step) {
            check(perCall == 1 ? store.putMessage(message(first)) : store.putMessages(batch(first)));
        }
    }

    private void putUnanswered() throws InterruptedException {
        var free = new Semaphore(waiting);
        for (int number = 0; number < messages; number++) {
            free.acquire();
            store.asyncPutMessage(message(number)).whenComplete((result, failure) -> {
                if (failure != null || !result.isOk()) {
                    failures.add(failure != null ? failure : new IllegalStateException(result.toString()));
                }
                free.release();
            });
        }
        free.acquire(waiting);
    }

    private void watch() {
        try {
            while (true) {
                Thread.sleep(SAMPLE_MILLISECONDS);
                behind.add(store.dispatchBehindBytes() > 0 ? store.dispatchBehindMilliseconds() : 0);
            }
        } catch (InterruptedException end) {
            // All puts are answered.
        }
    }

    private static void check(PutMessageResult result) {
        if (!result.isOk()) {
            throw new IllegalStateException(result.toString());
        }
    }

    private MessageExtBrokerInner message(int number) {
        var message = new MessageExtBrokerInner();
        fill(message, number);
        message.setBody(body);
        message.setKeys("key-" + number);
        message.setTags(TAG);
        message.setTagsCode(TAG.hashCode());
        message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
        return message;
    }

    private MessageExtBatch batch(int first) {
        int end = Math.min(first + perCall, messages);
        var batch = new MessageExtBatch();
        fill(batch, first / perCall);
        List<Message> inner = new ArrayList<>(perCall);
        for (int number = first; number < end; number++) {
            inner.add(new Message(batch.getTopic(), TAG, "key-" + number, body));
        }
        batch.setBody(MessageDecoder.encodeMessages(inner));
        return batch;
    }

    private void fill(MessageExt message, int place) {
        message.setTopic("topic-" + place / queues % topics);
        message.setQueueId(place % queues);
        message.setBornTimestamp(System.currentTimeMillis());
        message.setBornHost(HOST);
        message.setStoreHost(HOST);
    }
}
