import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageStatus;

/** Reads every queue from its first to its last offset, as a consumer's pulls do. */
final class ReadQueues {
    private static final int MOST = 32;

    private ReadQueues() {
    }

    static Map<String, Object> all(DefaultMessageStore store) throws Exception {
        List<Object> messages = new ArrayList<>();
        for (var topic : store.getConsumeQueueTable().entrySet()) {
            for (int queueId : topic.getValue().keySet()) {
                read(store, topic.getKey(), queueId, messages);
            }
        }
        return Map.of("messages", messages);
    }

    private static void read(DefaultMessageStore store, String topic, int queueId, List<Object> messages)
        throws Exception {
        long offset = store.getMinOffsetInQueue(topic, queueId);
        long end = store.getMaxOffsetInQueue(topic, queueId);
        while (offset < end) {
            var result = store.getMessage("reader", topic, queueId, offset, MOST, null);
            try {
                if (result.getStatus() != GetMessageStatus.FOUND) {
                    throw new IllegalStateException(
                        result.getStatus() + " at " + topic + "/" + queueId + "/" + offset);
                }
                for (int i = 0; i < result.getMessageCount(); i++) {
                    var buffer = result.getMessageMapedList().get(i).getByteBuffer().slice();
                    long queueOffset = result.getMessageQueueOffset().get(i);
                    var entry = store.getConsumeQueue(topic, queueId).get(queueOffset);
                    messages.add(message(MessageDecoder.decode(buffer, true, false), queueOffset, entry.getTagsCode()));
                }
                offset = result.getNextBeginOffset();
            } finally {
                result.release();
            }
        }
    }

    /** A message with the place it was read from: `readAt` in its queue, and the tags code found there. */
    private static Map<String, Object> message(MessageExt message, long readAt, long tagsCode) {
        byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("topic", message.getTopic());
        fields.put("queueId", message.getQueueId());
        fields.put("queueOffset", message.getQueueOffset());
        fields.put("readAt", readAt);
        fields.put("tagsCode", tagsCode);
        fields.put("physicalOffset", message.getCommitLogOffset());
        fields.put("size", message.getStoreSize());
        fields.put("flag", message.getFlag());
        fields.put("sysFlag", message.getSysFlag());
        fields.put("bornTimestamp", message.getBornTimestamp());
        fields.put("bornHost", message.getBornHost().toString());
        fields.put("storeTimestamp", message.getStoreTimestamp());
        fields.put("storeHost", message.getStoreHost().toString());
        fields.put("reconsumeTimes", message.getReconsumeTimes());
        fields.put("preparedTransactionOffset", message.getPreparedTransactionOffset());
        fields.put("properties", message.getProperties());
        fields.put("offsetMsgId", message.getMsgId());
        fields.put("body", Base64.getEncoder().encodeToString(body));
        return fields;
    }
}
