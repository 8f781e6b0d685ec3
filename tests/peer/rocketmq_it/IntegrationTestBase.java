package org.apache.rocketmq.test.base;

import java.io.File;
import java.util.HashMap;
import java.util.Map;
import mqlake.it.RemoteBroker;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicAttributes;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.attribute.CQType;
import org.apache.rocketmq.common.attribute.TopicMessageType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.test.util.MQAdminTestUtils;

/** What RocketMQ's tests ask of the class of that name, here for servers in other processes. */
public class IntegrationTestBase {
    private static final int TOPIC_WITHIN = 30; // seconds

    public static BrokerController createAndStartBroker(MessageStoreConfig files, BrokerConfig settings) {
        return RemoteBroker.started(settings);
    }

    public static boolean initTopic(String topic, String names, String cluster, CQType queues) {
        return initTopic(topic, names, cluster, BaseConf.QUEUE_NUMBERS, queues);
    }

    public static boolean initTopic(String topic, String names, String cluster, TopicMessageType type) {
        return initTopic(topic, names, cluster, BaseConf.QUEUE_NUMBERS, CQType.SimpleCQ, type);
    }

    public static boolean initTopic(String topic, String names, String cluster, int count, CQType queues) {
        return initTopic(topic, names, cluster, count, queues, TopicMessageType.NORMAL);
    }

    public static boolean initTopic(
        String topic, String names, String cluster, int count, CQType queues, TopicMessageType type) {
        return initTopic(topic, names, cluster, count, queues, type, null);
    }

    /** Creates a topic; `cluster` may also be a broker, and `expiration` (minutes) is for a LITE topic. */
    public static boolean initTopic(
        String topic, String names, String cluster, int count, CQType queues, TopicMessageType type, Long expiration) {
        Map<String, String> attributes = new HashMap<>();
        if (queues != CQType.SimpleCQ) {
            attributes.put("+" + TopicAttributes.QUEUE_TYPE_ATTRIBUTE.getName(), queues.toString());
        }
        if (type != TopicMessageType.NORMAL) {
            attributes.put("+" + TopicAttributes.TOPIC_MESSAGE_TYPE_ATTRIBUTE.getName(), type.toString());
        }
        if (type == TopicMessageType.LITE) {
            attributes.put("+" + TopicAttributes.LITE_EXPIRATION_ATTRIBUTE.getName(), String.valueOf(expiration));
        }
        return MQAdminTestUtils.createTopic(names, cluster, topic, count, attributes, TOPIC_WITHIN);
    }

    public static void deleteFile(File file) {
        if (file.exists()) {
            UtilAll.deleteFile(file);
        }
    }

    public static void initMQAdmin(String names) {
        try {
            MQAdminTestUtils.startAdmin(names);
        } catch (MQClientException thrown) {
            throw new AssertionError(thrown);
        }
    }
}
