import java.io.PrintStream;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/** Sends a message of each kind to a topic, consumes them, and prints them with all their fields. */
public final class Rows {
    private static final int TIMEOUT = 60_000;
    private static final String[] CODECS = {"ZLIB", "LZ4", "ZSTD"};

    private final String names;
    private final String topic;
    private int sent;

    private Rows(String names, String topic) {
        this.names = names;
        this.topic = topic;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        int code = 1;
        try {
            var rows = new Rows(arguments[0], arguments[1]);
            rows.send();
            answers.println(RemotingSerializable.toJson(rows.consume(), false));
            answers.flush();
            code = 0;
        } catch (Throwable failure) {
            failure.printStackTrace();
        }
        // Clients leave threads behind that would keep the process alive.
        Runtime.getRuntime().halt(code);
    }

    private void send() throws Exception {
        for (String codec : CODECS) {
            // A producer reads this when it is created.
            System.setProperty("rocketmq.message.compressType", codec);
            var producer = started(new DefaultMQProducer("P_" + topic + codec));
            producer.setCompressMsgBodyOverHowmuch(500);
            sent(producer.send(message("compressed " + codec, "word ".repeat(2000))));
            producer.shutdown();
        }
        var producer = started(new DefaultMQProducer("P_" + topic));
        sent(producer.send(message("plain", "日本 \u0000 plain")));
        sent(producer.send(new Message(topic, new byte[] {-1, 0, 1})));
        Message delayed = message("delayed", "delayed");
        delayed.setDelayTimeLevel(1);
        sent(producer.send(delayed));
        List<Message> batch = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            batch.add(message("batched-" + number, "batched " + number));
        }
        sent(producer.send(batch));
        sent += batch.size() - 1;
        producer.shutdown();
        transact();
    }

    private void transact() throws Exception {
        var producer = new TransactionMQProducer("T_" + topic);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return (LocalTransactionState) argument;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return message.getKeys().contains("committed")
                    ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
            }
        });
        started(producer);
        var large = message("committed", "committed ".repeat(2000));
        producer.sendMessageInTransaction(message("rolled-back", "no"), LocalTransactionState.ROLLBACK_MESSAGE);
        sent(producer.sendMessageInTransaction(large, LocalTransactionState.COMMIT_MESSAGE));
        // The producer stays: the commit may be on its way, and if it is lost, the broker asks.
    }

    private Message message(String key, String body) {
        var message = new Message(topic, "tag-" + key.length(), body.getBytes(StandardCharsets.UTF_8));
        message.setKeys(List.of(key.replace(' ', '-'), "shared"));
        message.setFlag(7 + sent);
        message.putUserProperty("colour", "blåu, 青");
        return message;
    }

    private <P extends DefaultMQProducer> P started(P producer) throws Exception {
        producer.setNamesrvAddr(names);
        producer.setInstanceName(producer.getProducerGroup());
        producer.setSendMsgTimeout(TIMEOUT);
        producer.setMqClientApiTimeout(TIMEOUT);
        producer.start();
        while (!hasRoute(producer)) {
            Thread.sleep(100);
        }
        return producer;
    }

    /** Whether a producer knows the topic's queues: a name server on a busy machine may be late. */
    private boolean hasRoute(DefaultMQProducer producer) {
        try {
            return !producer.fetchPublishMessageQueues(topic).isEmpty();
        } catch (Exception notYet) {
            return false;
        }
    }

    private void sent(Object result) {
        if (!result.toString().contains("SEND_OK")) {
            throw new IllegalStateException(result.toString());
        }
        sent++;
    }

    private List<Map<String, Object>> consume() throws Exception {
        List<Map<String, Object>> rows = new ArrayList<>();
        var consumer = new DefaultMQPushConsumer("G_" + topic);
        consumer.setNamesrvAddr(names);
        consumer.setMqClientApiTimeout(TIMEOUT);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
            synchronized (rows) {
                batch.forEach(message -> rows.add(row(message)));
                rows.notifyAll();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        synchronized (rows) {
            while (rows.stream().map(row -> row.get("physicalOffset")).distinct().count() < sent) {
                rows.wait();  // The test that started this program has the patience.
            }
        }
        consumer.shutdown();
        return rows;
    }

    private static Map<String, Object> row(MessageExt message) {
        Map<String, Object> row = new TreeMap<>();
        row.put("topic", message.getTopic());
        row.put("flag", message.getFlag());
        row.put("body", Base64.getEncoder().encodeToString(message.getBody()));
        row.put("properties", new TreeMap<>(message.getProperties()));
        row.put("brokerName", message.getBrokerName());
        row.put("queueId", message.getQueueId());
        row.put("queueOffset", message.getQueueOffset());
        row.put("bornTimestamp", message.getBornTimestamp());
        row.put("storeTimestamp", message.getStoreTimestamp());
        row.put("physicalOffset", message.getCommitLogOffset());
        row.put("size", message.getStoreSize());
        row.put("tags", message.getTags());
        row.put("keys", message.getKeys());
        row.put("msgId", ((MessageClientExt) message).getOffsetMsgId());
        row.put("uniqKey", message.getMsgId());
        row.put("sysFlag", message.getSysFlag());
        row.put("reconsumeTimes", message.getReconsumeTimes());
        row.put("bornHost", address(message.getBornHost()));
        row.put("storeHost", address(message.getStoreHost()));
        row.put("preparedTransactionOffset", message.getPreparedTransactionOffset());
        row.put("bodyCrc", message.getBodyCRC());
        return row;
    }

    private static String address(SocketAddress host) {
        return host.toString().replaceFirst("^/", "");
    }
}
