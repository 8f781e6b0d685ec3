import com.alibaba.fastjson2.JSONArray;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.BoundaryType;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;

/** Looks messages up by key, by offset message id and by time. */
final class LookUp {
    private static final int MOST = 64;

    private LookUp() {
    }

    /** For each [topic, key] or [topic, key, index type], the physical offsets of what is found. */
    static Map<String, Object> keys(DefaultMessageStore store, JSONArray questions) {
        List<Object> found = new ArrayList<>();
        for (int i = 0; i < questions.size(); i++) {
            JSONArray question = questions.getJSONArray(i);
            QueryMessageResult result = query(store, question);
            List<Long> offsets = new ArrayList<>();
            for (SelectMappedBufferResult message : result.getMessageMapedList()) {
                offsets.add(message.getStartOffset());
            }
            result.release();
            Collections.sort(offsets);
            found.add(offsets);
        }
        return Map.of("offsets", found);
    }

    private static QueryMessageResult query(DefaultMessageStore store, JSONArray question) {
        String topic = question.getString(0);
        String key = question.getString(1);
        if (question.size() == 2) {
            return store.queryMessage(topic, key, MOST, 0, Long.MAX_VALUE);
        }
        return store.queryMessage(topic, key, MOST, 0, Long.MAX_VALUE, question.getString(2), null);
    }

    /** For each offset message id, the id of the message at the offset in it. */
    static Map<String, Object> ids(DefaultMessageStore store, JSONArray ids) throws Exception {
        List<String> found = new ArrayList<>();
        for (int i = 0; i < ids.size(); i++) {
            long offset = MessageDecoder.decodeMessageId(ids.getString(i)).getOffset();
            found.add(store.lookMessageByOffset(offset).getMsgId());
        }
        return Map.of("ids", found);
    }

    /** For each [topic, queue id, milliseconds, boundary], the queue offset. */
    static Map<String, Object> times(DefaultMessageStore store, JSONArray questions) {
        List<Long> offsets = new ArrayList<>();
        for (int i = 0; i < questions.size(); i++) {
            JSONArray question = questions.getJSONArray(i);
            offsets.add(store.getOffsetInQueueByTime(question.getString(0), question.getIntValue(1),
                question.getLongValue(2), BoundaryType.valueOf(question.getString(3))));
        }
        return Map.of("offsets", offsets);
    }
}
