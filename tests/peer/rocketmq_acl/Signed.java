import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.body.AclInfo;
import org.apache.rocketmq.remoting.protocol.body.UserInfo;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Signs with AclClientRPCHook: creates a user with permissions, then sends and consumes as this
 * user, and tries what it must not do. Each line of the output is a step and what came of it.
 */
public class Signed {
    private static final String TOPIC = "JavaOrders";
    private static final String GROUP = "java-readers";
    private static final String USER = "java-user";
    private static final String PASSWORD = "java-password-3";
    /** Milliseconds between requests for routes. */
    private static final int ROUTES = 1000;

    public static void main(String[] args) throws Exception {
        try {
            run(args);
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private static void run(String[] args) throws Exception {
        String names = args[0];
        String broker = args[1];
        DefaultMQAdminExt admin = new DefaultMQAdminExt(hook(args[2], args[3]), 60_000);
        admin.setNamesrvAddr(names);
        admin.start();
        administer(admin, broker);
        send(names);
        commit(names);
        consume(names);
        refused(names, "wrong key", hook(USER, "wrong"), TOPIC);
        refused(names, "nobody", null, TOPIC);
        refused(names, "another topic", hook(USER, PASSWORD), "Another");
        admin.deleteUser(broker, USER);
        refused(names, "deleted", hook(USER, PASSWORD), TOPIC);
        admin.shutdown();
    }

    private static RPCHook hook(String accessKey, String secretKey) {
        return new AclClientRPCHook(new SessionCredentials(accessKey, secretKey));
    }

    private static void administer(DefaultMQAdminExt admin, String broker) throws Exception {
        admin.createUser(broker, UserInfo.of(USER, PASSWORD, "Normal"));
        UserInfo user = admin.getUser(broker, USER);
        say("user", user.getUsername() + " " + user.getUserType() + " " + user.getUserStatus());
        say("users", String.valueOf(admin.listUser(broker, null).size()));
        grant(admin, broker, "Topic:" + TOPIC, "Pub", "Sub");
        grant(admin, broker, "Group:" + GROUP, "Sub");
        AclInfo acl = admin.getAcl(broker, "User:" + USER);
        List<String> resources = new ArrayList<>();
        acl.getPolicies().get(0).getEntries().forEach(entry -> resources.add(
            entry.getResource() + entry.getActions() + entry.getDecision() + entry.getSourceIps()));
        say("acl", acl.getSubject() + " " + acl.getPolicies().get(0).getPolicyType() + " " + resources);
        say("acls", String.valueOf(admin.listAcl(broker, "java", null).size()));
    }

    private static void grant(DefaultMQAdminExt admin, String broker, String resource, String... actions)
        throws Exception {
        List<String> addresses = Collections.singletonList("127.0.0.0/8");
        AclInfo acl = AclInfo.of("User:" + USER, Collections.singletonList(resource),
            java.util.Arrays.asList(actions), addresses, "Allow");
        admin.createAcl(broker, acl);
    }

    private static void send(String names) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("java-senders", hook(USER, PASSWORD));
        producer.setNamesrvAddr(names);
        producer.setSendMsgTimeout(60_000);
        producer.start();
        say("send", producer.send(message("one")).getSendStatus().name());
        List<Message> batch = new ArrayList<>();
        batch.add(message("two"));
        batch.add(message("three"));
        say("batch", producer.send(batch).getSendStatus().name());
        producer.sendOneway(message("four \u00e4\ud83d\ude00"));
        producer.shutdown();
    }

    private static void commit(String names) throws Exception {
        TransactionMQProducer producer =
            new TransactionMQProducer("java-committers", hook(USER, PASSWORD));
        producer.setNamesrvAddr(names);
        producer.setSendMsgTimeout(60_000);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object arg) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        say("commit", producer.sendMessageInTransaction(message("five"), null).getSendStatus().name());
        producer.shutdown();
    }

    private static void consume(String names) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(GROUP, hook(USER, PASSWORD));
        consumer.setNamesrvAddr(names);
        // It does not know its retry topic before it asks for the route again: else after 30 s.
        consumer.setPollNameServerInterval(ROUTES);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(TOPIC, "*");
        Set<String> bodies = new ConcurrentSkipListSet<>();
        Set<String> again = new ConcurrentSkipListSet<>();
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            boolean isLater = false;
            for (MessageExt message : messages) {
                String body = new String(message.getBody(), StandardCharsets.UTF_8);
                if (body.equals("one") && message.getReconsumeTimes() == 0) {
                    isLater = true;
                } else {
                    bodies.add(body);
                    if (message.getReconsumeTimes() > 0) {
                        again.add(body);
                    }
                }
            }
            context.setDelayLevelWhenNextConsume(1);
            return isLater ? ConsumeConcurrentlyStatus.RECONSUME_LATER
                : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        long deadline = System.currentTimeMillis() + 300_000;
        while ((bodies.size() < 5 || !again.contains("one")) && System.currentTimeMillis() < deadline) {
            Thread.sleep(50);
        }
        consumer.shutdown();
        say("consume", new TreeSet<>(bodies).toString());
        say("again", String.valueOf(again.contains("one")));
    }

    private static void refused(String names, String step, RPCHook hook, String topic) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("java-" + step.replace(' ', '-'), hook);
        producer.setNamesrvAddr(names);
        producer.setInstanceName(step);
        producer.setSendMsgTimeout(60_000);
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        try {
            producer.send(new Message(topic, "x".getBytes(StandardCharsets.UTF_8)));
            say(step, "sent");
        } catch (MQClientException failed) {
            MQBrokerException error = (MQBrokerException) failed.getCause();
            say(step, error.getResponseCode() + " " + error.getErrorMessage());
        }
        producer.shutdown();
    }

    private static Message message(String body) {
        return new Message(TOPIC, "tag", "key " + body, body.getBytes(StandardCharsets.UTF_8));
    }

    private static void say(String step, String outcome) {
        System.out.println(step + ": " + outcome);
    }
}
