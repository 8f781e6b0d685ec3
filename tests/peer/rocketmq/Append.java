import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;

/** Puts described messages one after the other, and says what each put answered. */
final class Append {
    private Append() {
    }

    /** Each description is a message, or has the messages of a batch under "batch". */
    static Map<String, Object> all(DefaultMessageStore store, JSONArray descriptions) throws Exception {
        List<Object> answers = new ArrayList<>();
        for (int i = 0; i < descriptions.size(); i++) {
            JSONObject description = descriptions.getJSONObject(i);
            answers.add(answer(description.containsKey("batch")
                ? store.putMessages(batch(description))
                : store.putMessage(message(description))));
        }
        return Map.of("puts", answers);
    }

    private static MessageExtBrokerInner message(JSONObject description) throws Exception {
        var message = new MessageExtBrokerInner();
        fill(message, description);
        message.setBody(body(description));
        MessageAccessor.setProperties(message, properties(description));
        message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
        message.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(message.getTags()));
        return message;
    }

    private static MessageExtBatch batch(JSONObject description) throws Exception {
        List<Message> inner = new ArrayList<>();
        JSONArray descriptions = description.getJSONArray("batch");
        for (int i = 0; i < descriptions.size(); i++) {
            JSONObject one = descriptions.getJSONObject(i);
            var message = new Message(description.getString("topic"), body(one));
            message.setFlag(one.getIntValue("flag"));
            MessageAccessor.setProperties(message, properties(one));
            inner.add(message);
        }
        var batch = new MessageExtBatch();
        fill(batch, description);
        batch.setBody(MessageDecoder.encodeMessages(inner));
        return batch;
    }

    private static void fill(MessageExt message, JSONObject description) throws Exception {
        message.setTopic(description.getString("topic"));
        message.setQueueId(description.getIntValue("queueId"));
        message.setFlag(description.getIntValue("flag"));
        message.setSysFlag(description.getIntValue("sysFlag"));
        message.setReconsumeTimes(description.getIntValue("reconsumeTimes"));
        message.setPreparedTransactionOffset(description.getLongValue("preparedTransactionOffset"));
        message.setBornTimestamp(description.getLongValue("bornTimestamp", System.currentTimeMillis()));
        message.setBornHost(host(description.getString("bornHost"), 40000));
        message.setStoreHost(host(description.getString("storeHost"), 10911));
    }

    /** An IPv4 or IPv6 address; the loopback address where none is given. */
    private static InetSocketAddress host(String address, int port) throws Exception {
        return new InetSocketAddress(InetAddress.getByName(address == null ? "127.0.0.1" : address), port);
    }

    private static byte[] body(JSONObject description) {
        return Base64.getDecoder().decode(description.getString("body"));
    }

    private static Map<String, String> properties(JSONObject description) {
        Map<String, String> properties = new HashMap<>();
        JSONObject given = description.getJSONObject("properties");
        if (given != null) {
            given.forEach((name, value) -> properties.put(name, (String) value));
        }
        return properties;
    }

    private static Map<String, Object> answer(PutMessageResult result) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("status", result.getPutMessageStatus().name());
        var append = result.getAppendMessageResult();
        if (append != null) {
            answer.put("physicalOffset", append.getWroteOffset());
            answer.put("size", append.getWroteBytes());
            answer.put("queueOffset", append.getLogicsOffset());
            answer.put("messageIds", List.of(append.getMsgId().split(",")));
            answer.put("storeTimestamp", append.getStoreTimestamp());
        }
        return answer;
    }
}
