import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.store.DefaultMessageStore;

/** Says where a store's log, queues and checkpoint begin and end. */
final class Bounds {
    private Bounds() {
    }

    static Map<String, Object> of(DefaultMessageStore store) throws Exception {
        List<Object> queues = new ArrayList<>();
        for (var topic : store.getConsumeQueueTable().entrySet()) {
            for (int queueId : topic.getValue().keySet()) {
                queues.add(Map.of(
                    "topic", topic.getKey(),
                    "queueId", queueId,
                    "minOffset", store.getMinOffsetInQueue(topic.getKey(), queueId),
                    "maxOffset", store.getMaxOffsetInQueue(topic.getKey(), queueId)));
            }
        }
        var checkpoint = store.getStoreCheckpoint();
        return Map.of(
            "minOffset", store.getMinPhyOffset(),
            "maxOffset", store.getMaxPhyOffset(),
            "queues", queues,
            "checkpoint", Map.of(
                "physicMsgTimestamp", checkpoint.getPhysicMsgTimestamp(),
                "logicsMsgTimestamp", checkpoint.getLogicsMsgTimestamp(),
                "indexMsgTimestamp", checkpoint.getIndexMsgTimestamp()));
    }
}
