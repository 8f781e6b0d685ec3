import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;

/** A producer that traces what it sends; the trace is found by the message's id. */
final class Trace implements Features.Feature {
    private static final String TOPIC = "RMQ_SYS_TRACE_TOPIC";

    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(1);
        var producer = rig.started(new DefaultMQProducer("T_" + rig.topic, null, true, null));
        String id = producer.send(rig.message("traced")).getMsgId();
        List<MessageExt> found = new ArrayList<>();
        Rig.until("a trace", () -> found.addAll(traces(rig, id)));
        return Map.of("msgId", id, "trace", Rig.body(found.get(0)));
    }

    private static List<MessageExt> traces(Rig rig, String id) {
        try {
            return rig.producer().queryMessage(TOPIC, id, 32, 0, Long.MAX_VALUE).getMessageList();
        } catch (Exception notYet) {
            return List.of();
        }
    }
}
