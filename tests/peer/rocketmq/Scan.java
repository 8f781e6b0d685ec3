import java.util.Map;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageStatus;
import org.apache.rocketmq.store.SelectMappedBufferResult;

/** Pulls all queues, 32 messages a call; sums up the sizes of messages, or the queue offsets of decoded ones. */
final class Scan {
    private static final int MOST = 32;

    private Scan() {
    }

    static Map<String, Object> run(DefaultMessageStore store, boolean decoded) throws Exception {
        long messages = 0;
        long sum = 0;
        long begin = System.nanoTime();
        for (var topic : store.getConsumeQueueTable().entrySet()) {
            for (int queueId : topic.getValue().keySet()) {
                long offset = store.getMinOffsetInQueue(topic.getKey(), queueId);
                long end = store.getMaxOffsetInQueue(topic.getKey(), queueId);
                while (offset < end) {
                    var result = store.getMessage("reader", topic.getKey(), queueId, offset, MOST, null);
                    if (result.getStatus() != GetMessageStatus.FOUND) {
                        throw new IllegalStateException(result.getStatus() + " at " + offset);
                    }
                    for (SelectMappedBufferResult message : result.getMessageMapedList()) {
                        sum += decoded
                            ? MessageDecoder.decode(message.getByteBuffer().slice(), true, false).getQueueOffset()
                            : message.getSize();
                    }
                    messages += result.getMessageCount();
                    offset = result.getNextBeginOffset();
                    result.release();
                }
            }
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        return Map.of("seconds", seconds, "messages", messages, "sum", sum);
    }
}
