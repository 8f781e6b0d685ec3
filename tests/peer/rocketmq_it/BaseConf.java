package org.apache.rocketmq.test.base;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ForkJoinPool;
import mqlake.it.RemoteBroker;
import mqlake.it.RemoteNames;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.client.consumer.MQPullConsumer;
import org.apache.rocketmq.client.consumer.MQPushConsumer;
import org.apache.rocketmq.client.impl.MQClientManager;
import org.apache.rocketmq.client.producer.MQProducer;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.common.attribute.CQType;
import org.apache.rocketmq.common.attribute.TopicMessageType;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.test.client.rmq.RMQAsyncSendProducer;
import org.apache.rocketmq.test.client.rmq.RMQNormalConsumer;
import org.apache.rocketmq.test.client.rmq.RMQNormalProducer;
import org.apache.rocketmq.test.client.rmq.RMQTransactionalProducer;
import org.apache.rocketmq.test.clientinterface.AbstractMQConsumer;
import org.apache.rocketmq.test.clientinterface.AbstractMQProducer;
import org.apache.rocketmq.test.clientinterface.MQConsumer;
import org.apache.rocketmq.test.listener.AbstractListener;
import org.apache.rocketmq.test.util.MQAdminTestUtils;
import org.apache.rocketmq.test.util.MQRandomUtils;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.tools.admin.MQAdminExt;
import org.junit.Assert;

/**
 * What RocketMQ's tests ask of the base class of that name, here for servers in other processes.
 * The properties mqlake.names, mqlake.cluster and mqlake.brokers (name=address, separated by commas) say which.
 */
public class BaseConf {
    public static final String NAMESRV_ADDR = System.getProperty("mqlake.names");

    protected static final String CLUSTER_NAME = System.getProperty("mqlake.cluster");
    protected static final String BROKER1_NAME;
    protected static final String BROKER2_NAME;
    protected static final String BROKER3_NAME;
    protected static final int BROKER_NUM = 3;
    protected static final int WAIT_TIME = 5;
    protected static final int CONSUME_TIME = 120_000;
    protected static final int QUEUE_NUMBERS = 8;

    protected static NamesrvController namesrvController = new RemoteNames(NAMESRV_ADDR);
    protected static BrokerController brokerController1;
    protected static BrokerController brokerController2;
    protected static BrokerController brokerController3;
    protected static List<BrokerController> brokerControllerList = new ArrayList<>();
    protected static Map<String, BrokerController> brokerControllerMap = new HashMap<>();
    protected static List<Object> mqClients = new ArrayList<>();
    protected static boolean debug = false;

    private static final long REGISTERED_WITHIN = 30_000; // milliseconds

    static {
        List<String> names = new ArrayList<>();
        for (String broker : System.getProperty("mqlake.brokers").split(",")) {
            String[] parts = broker.split("=");
            names.add(parts[0]);
            brokerControllerList.add(RemoteBroker.at(parts[0], parts[1]));
            brokerControllerMap.put(parts[0], brokerControllerList.get(names.size() - 1));
        }
        BROKER1_NAME = names.get(0);
        BROKER2_NAME = names.get(1);
        BROKER3_NAME = names.get(2);
        brokerController1 = brokerControllerList.get(0);
        brokerController2 = brokerControllerList.get(1);
        brokerController3 = brokerControllerList.get(2);
        IntegrationTestBase.initMQAdmin(NAMESRV_ADDR);
    }

    public BaseConf() {
        waitBrokerRegistered(NAMESRV_ADDR, CLUSTER_NAME, BROKER_NUM);
    }

    public static void waitBrokerRegistered(String names, String cluster, int count) {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(500);
        admin.setNamesrvAddr(names);
        long until = System.currentTimeMillis() + REGISTERED_WITHIN;
        try {
            admin.start();
            while (registered(admin, cluster) != count) {
                Assert.assertTrue("brokers do not register", System.currentTimeMillis() < until);
                Thread.sleep(100);
            }
        } catch (Exception thrown) {
            throw new AssertionError(thrown);
        } finally {
            ForkJoinPool.commonPool().execute(admin::shutdown);
        }
    }

    private static int registered(MQAdminExt admin, String cluster) {
        try {
            return admin.examineTopicRouteInfo(cluster).getBrokerDatas().size();
        } catch (Exception notYet) {
            return 0;
        }
    }

    public boolean awaitDispatchMs(long milliseconds) throws Exception {
        long until = System.currentTimeMillis() + milliseconds;
        while (System.currentTimeMillis() <= until) {
            if (brokerControllerList.stream().allMatch(each -> each.getMessageStore().dispatchBehindBytes() == 0)) {
                return true;
            }
            Thread.sleep(100);
        }
        return false;
    }

    public static String initTopic() {
        return initTopicWithName(MQRandomUtils.getRandomTopic());
    }

    public static String initTopic(TopicMessageType type) {
        return initTopicWithName(MQRandomUtils.getRandomTopic(), type);
    }

    public static String initTopicWithName(String topic) {
        return initTopicOnSampleTopicBroker(topic, CLUSTER_NAME);
    }

    public static String initTopicWithName(String topic, TopicMessageType type) {
        return initTopicOnSampleTopicBroker(topic, CLUSTER_NAME, type);
    }

    public static String initTopicOnSampleTopicBroker(String sample) {
        return initTopicOnSampleTopicBroker(MQRandomUtils.getRandomTopic(), sample);
    }

    public static String initTopicOnSampleTopicBroker(String sample, TopicMessageType type) {
        return initTopicOnSampleTopicBroker(MQRandomUtils.getRandomTopic(), sample, type);
    }

    public static String initTopicOnSampleTopicBroker(String topic, String sample) {
        IntegrationTestBase.initTopic(topic, NAMESRV_ADDR, sample, CQType.SimpleCQ);
        return topic;
    }

    public static String initTopicOnSampleTopicBroker(String topic, String sample, TopicMessageType type) {
        IntegrationTestBase.initTopic(topic, NAMESRV_ADDR, sample, type);
        return topic;
    }

    public static String initConsumerGroup() {
        return initConsumerGroup(MQRandomUtils.getRandomConsumerGroup());
    }

    public static String initConsumerGroup(String group) {
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(group);
        return initConsumerGroup(config);
    }

    public static String initConsumerGroup(SubscriptionGroupConfig group) {
        MQAdminTestUtils.createSub(NAMESRV_ADDR, CLUSTER_NAME, group);
        return group.getGroupName();
    }

    public static DefaultMQAdminExt getAdmin(String names) {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(3_000);
        admin.setNamesrvAddr(names);
        admin.setPollNameServerInterval(100);
        mqClients.add(admin);
        return admin;
    }

    public static RMQNormalProducer getProducer(String names, String topic) {
        return getProducer(names, topic, false);
    }

    public static RMQNormalProducer getProducer(String names, String topic, boolean isEncrypted) {
        return kept(new RMQNormalProducer(names, topic, isEncrypted));
    }

    public static RMQNormalProducer getProducer(String names, String topic, String group, String instance) {
        return kept(new RMQNormalProducer(names, topic, group, instance));
    }

    public static RMQTransactionalProducer getTransactionalProducer(
        String names, String topic, TransactionListener listener) {
        return kept(new RMQTransactionalProducer(names, topic, false, listener));
    }

    public static RMQAsyncSendProducer getAsyncProducer(String names, String topic) {
        return kept(new RMQAsyncSendProducer(names, topic));
    }

    public static RMQNormalConsumer getConsumer(
        String names, String topic, String expression, AbstractListener listener) {
        return getConsumer(names, topic, expression, listener, false);
    }

    public static RMQNormalConsumer getConsumer(
        String names, String topic, String expression, AbstractListener listener, boolean isEncrypted) {
        return getConsumer(names, initConsumerGroup(), topic, expression, listener, isEncrypted);
    }

    public static RMQNormalConsumer getConsumer(
        String names, String group, String topic, String expression, AbstractListener listener) {
        return getConsumer(names, group, topic, expression, listener, false);
    }

    public static RMQNormalConsumer getConsumer(
        String names, String group, String topic, String expression, AbstractListener listener, boolean isEncrypted) {
        RMQNormalConsumer consumer = new RMQNormalConsumer(names, topic, expression, group, listener);
        consumer.create(isEncrypted);
        for (RPCHook hook : RemoteBroker.hooks()) {
            MQClientManager.getInstance().getOrCreateMQClientInstance(consumer.getConsumer())
                .getMQClientAPIImpl().getRemotingClient().registerRPCHook(hook);
        }
        consumer.start();
        return kept(consumer);
    }

    private static <T> T kept(T client) {
        mqClients.add(client);
        return client;
    }

    public static Set<String> getBrokers() {
        return new TreeSet<>(brokerControllerMap.keySet());
    }

    public static void shutdown() {
        List<Object> clients = new ArrayList<>(mqClients);
        mqClients.clear();
        shutdown(clients);
    }

    /** Shuts clients down without waiting for it. */
    public static void shutdown(List<Object> clients) {
        clients.forEach(client -> ForkJoinPool.commonPool().execute(() -> shutdown(client)));
    }

    private static void shutdown(Object client) {
        if (client instanceof AbstractMQProducer) {
            ((AbstractMQProducer) client).shutdown();
        } else if (client instanceof AbstractMQConsumer) {
            ((AbstractMQConsumer) client).shutdown();
        } else if (client instanceof MQAdminExt) {
            ((MQAdminExt) client).shutdown();
        } else if (client instanceof MQProducer) {
            ((MQProducer) client).shutdown();
        } else if (client instanceof MQPullConsumer) {
            ((MQPullConsumer) client).shutdown();
        } else if (client instanceof MQPushConsumer) {
            ((MQPushConsumer) client).shutdown();
        } else if (client instanceof MQConsumer) {
            ((MQConsumer) client).shutdown();
        }
    }
}
