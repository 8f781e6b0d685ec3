import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Clients of one feature, with names of their own, shut down together. */
final class Rig implements AutoCloseable {
    private static final AtomicInteger INSTANCES = new AtomicInteger();
    /** More than a request may take: after a cut, a heartbeat may wait for its whole timeout. */
    private static final int SECONDS = 200;
    /** Milliseconds: a request that is late is no failure. */
    private static final int REQUEST_TIMEOUT = 60_000;
    /** Milliseconds between requests for routes, instead of 30 s: a retry topic is not known at first. */
    private static final int ROUTES = 1000;

    final String topic;
    final String names;
    private final List<Runnable> clients = new ArrayList<>();
    private DefaultMQProducer producer;

    Rig(String names, String topic) {
        this.names = names;
        this.topic = topic;
    }

    static String instance() {
        return "peer-" + INSTANCES.incrementAndGet();
    }

    DefaultMQProducer producer() throws Exception {
        if (producer == null) {
            producer = started(new DefaultMQProducer("P_" + topic));
        }
        return producer;
    }

    DefaultMQProducer producer(String group) throws Exception {
        return started(new DefaultMQProducer(group));
    }

    <P extends DefaultMQProducer> P started(P made) throws Exception {
        made.setSendMsgTimeout(REQUEST_TIMEOUT);
        name(made);
        made.start();
        clients.add(made::shutdown);
        return made;
    }

    TransactionMQProducer transactional() {
        return new TransactionMQProducer("T_" + topic);
    }

    /** Waits until the name server tells of the rig's topic. */
    void awaitTopic(int queues) throws Exception {
        until("topic " + topic, () -> isKnown(topic, queues));
    }

    boolean isKnown(String name, int queues) {
        try {
            return producer().fetchPublishMessageQueues(name).size() >= queues;
        } catch (Exception notYet) {
            return false;
        }
    }

    DefaultMQPushConsumer consumer(String group) {
        var consumer = new DefaultMQPushConsumer(group);
        name(consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        clients.add(consumer::shutdown);
        return consumer;
    }

    DefaultLitePullConsumer litePull(String group) {
        var consumer = new DefaultLitePullConsumer(group);
        name(consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        clients.add(consumer::shutdown);
        return consumer;
    }

    DefaultMQPullConsumer pull(String group) throws Exception {
        var consumer = new DefaultMQPullConsumer(group);
        name(consumer);
        consumer.setConsumerPullTimeoutMillis(REQUEST_TIMEOUT);
        consumer.start();
        clients.add(consumer::shutdown);
        return consumer;
    }

    private void name(ClientConfig client) {
        client.setNamesrvAddr(names);
        client.setInstanceName(instance());
        client.setMqClientApiTimeout(REQUEST_TIMEOUT);
        client.setPollNameServerInterval(ROUTES);
    }

    static Message message(String topic, String tags, String body) {
        return new Message(topic, tags, body.getBytes(StandardCharsets.UTF_8));
    }

    Message message(String body) {
        return message(topic, "", body);
    }

    static String body(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    /** Waits until something is so, for as long as a feature may take. */
    static void until(String what, Callable<Boolean> isSo) throws Exception {
        long end = System.nanoTime() + SECONDS * 1_000_000_000L;
        while (!isSo.call()) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("waited in vain for " + what);
            }
            Thread.sleep(20);
        }
    }

    @Override
    public void close() {
        for (Runnable shutdown : clients) {
            shutdown.run();
        }
    }
}
