import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.MessageQueue;

/** One producer a queue sends each message until it is acknowledged; an orderly consumer reads all of them. */
final class Endure implements Features.Feature {
    private static final int EACH = 100;
    private static final int AGAIN = 20;
    private static final int SEND_TIMEOUT = 3000;

    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(4);
        var collected = new Collected();
        var consumer = rig.consumer("G_" + rig.topic);
        consumer.subscribe(rig.topic, "*");
        consumer.registerMessageListener((MessageListenerOrderly) (batch, context) -> {
            batch.forEach(collected::add);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        List<MessageQueue> queues = rig.producer().fetchPublishMessageQueues(rig.topic);
        var threads = Executors.newFixedThreadPool(queues.size());
        List<Future<Integer>> sending = threads.invokeAll(
            queues.stream().map(queue -> (Callable<Integer>) () -> send(rig, queue)).toList());
        int tries = 0;
        for (Future<Integer> each : sending) {
            tries += each.get();
        }
        threads.shutdown();
        collected.await(queues.size() * EACH);
        return Map.of("consumed", collected.all(), "tries", tries, "each", EACH);
    }

    private static int send(Rig rig, MessageQueue queue) throws Exception {
        int tries = 0;
        for (int number = 0; number < EACH; number++) {
            boolean isAcknowledged = false;
            while (!isAcknowledged) {
                tries++;
                try {
                    var message = rig.message(queue.getQueueId() + " " + number);
                    var result = rig.producer().send(message, queue, SEND_TIMEOUT);
                    isAcknowledged = result.getSendStatus() == SendStatus.SEND_OK;
                } catch (Exception again) {
                    Thread.sleep(AGAIN);
                }
            }
        }
        return tries;
    }
}
