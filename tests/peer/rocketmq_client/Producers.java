import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** Producers that send numbered messages, each to a queue of its own, one after the other, until they are stopped. */
final class Producers {
    private static final int LONGEST = 3000;
    /** Milliseconds between two messages of a queue: an empty slave copies all of them after each failover. */
    private static final int PAUSE = 10;
    private static final int PAUSE_AFTER_ERROR = 20;

    private final DefaultMQProducer producer;
    private final String topic;
    private final List<Thread> threads = new ArrayList<>();
    private final List<List<Integer>> acknowledged = new ArrayList<>();
    private int others;
    private volatile boolean isOver;

    Producers(String names, String topic, int queues) throws Exception {
        this.topic = topic;
        producer = new DefaultMQProducer("P_" + topic);
        producer.setNamesrvAddr(names);
        // How soon it learns that another broker is the master.
        producer.setPollNameServerInterval(500);
        producer.setSendMsgTimeout(5000);
        producer.start();
        for (int queue = 0; queue < queues; queue++) {
            int number = queue;
            acknowledged.add(new ArrayList<>());
            threads.add(new Thread(() -> produce(number)));
        }
        threads.forEach(Thread::start);
    }

    /** Returns the numbers that were acknowledged since the last call, by queue, and how many messages were not. */
    synchronized Map<String, ?> take() {
        var taken = new ArrayList<List<Integer>>();
        for (List<Integer> numbers : acknowledged) {
            taken.add(new ArrayList<>(numbers));
            numbers.clear();
        }
        int failed = others;
        others = 0;
        return Map.of("acknowledged", taken, "others", failed);
    }

    Map<String, ?> stop() throws InterruptedException {
        isOver = true;
        for (Thread thread : threads) {
            thread.join();
        }
        producer.shutdown();
        return take();
    }

    private void produce(int queue) {
        var random = new Random(queue);
        for (int number = 0; !isOver; number++) {
            byte[] filler = new byte[random.nextInt(LONGEST)];
            random.nextBytes(filler);
            byte[] head = (queue + " " + number + " ").getBytes();
            byte[] body = new byte[head.length + filler.length];
            System.arraycopy(head, 0, body, 0, head.length);
            System.arraycopy(filler, 0, body, head.length, filler.length);
            boolean isStored = false;
            try {
                var message = new Message(topic, null, queue + "-" + number, body);
                isStored = producer.send(message, Producers::select, queue).getSendStatus() == SendStatus.SEND_OK;
            } catch (Exception error) {
                // It may be stored all the same.
            }
            note(queue, number, isStored);
            pause(isStored ? PAUSE : PAUSE_AFTER_ERROR);
        }
    }

    private static MessageQueue select(List<MessageQueue> queues, Message message, Object wanted) {
        return queues.stream().filter(each -> wanted.equals(each.getQueueId())).findFirst().orElseThrow();
    }

    private synchronized void note(int queue, int number, boolean isStored) {
        if (isStored) {
            acknowledged.get(queue).add(number);
        } else {
            others++;
        }
    }

    private static void pause(int milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
