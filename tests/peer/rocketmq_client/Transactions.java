import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Half messages that are committed or rolled back, at once or when the broker asks. */
final class Transactions implements Features.Feature {
    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(4);
        List<String> checked = Collections.synchronizedList(new ArrayList<>());
        var producer = rig.transactional();
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return (LocalTransactionState) argument;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                String body = Rig.body(message);
                checked.add(body);
                if (!body.startsWith("late")) {  // its end is on the way
                    return LocalTransactionState.UNKNOW;
                }
                return body.startsWith("late commit")
                    ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
            }
        });
        rig.started(producer);
        Map<String, LocalTransactionState> kinds = new LinkedHashMap<>();
        kinds.put("commit", LocalTransactionState.COMMIT_MESSAGE);
        kinds.put("rollback", LocalTransactionState.ROLLBACK_MESSAGE);
        kinds.put("late commit", LocalTransactionState.UNKNOW);
        kinds.put("late rollback", LocalTransactionState.UNKNOW);
        List<String> states = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            for (var kind : kinds.entrySet()) {
                Message message = Rig.message(rig.topic, "TagA", kind.getKey() + " " + number);
                var result = producer.sendMessageInTransaction(message, kind.getValue());
                states.add(result.getSendStatus() + " " + result.getLocalTransactionState());
            }
        }
        var collected = new Collected();
        var consumer = rig.consumer("G_" + rig.topic);
        consumer.subscribe(rig.topic, "TagA");
        collected.listen(consumer);
        consumer.start();
        Rig.until("all questions", () -> {
            synchronized (checked) {
                return checked.stream().filter(body -> body.startsWith("late")).distinct().count() == 6;
            }
        });
        collected.await(6);
        rig.producer().send(Rig.message(rig.topic, "TagA", "last"));
        collected.await(7);
        return Map.of("states", states, "checked", checked, "consumed", collected.bodies());
    }
}
