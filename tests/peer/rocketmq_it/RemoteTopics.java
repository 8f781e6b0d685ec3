package mqlake.it;

import java.util.concurrent.ConcurrentMap;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.topic.TopicConfigManager;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.topic.TopicValidator;

/** The topics of a broker: a copy of its table, and changes that are requested of it. */
final class RemoteTopics extends TopicConfigManager {
    private final String address;

    RemoteTopics(BrokerController broker, String address) {
        super(broker, false);
        this.address = address;
    }

    @Override
    public ConcurrentMap<String, TopicConfig> getTopicConfigTable() {
        return address == null ? super.getTopicConfigTable() : Wire.ask(
            () -> Wire.requests().getAllTopicConfig(address, Wire.PATIENCE).getTopicConfigTable());
    }

    @Override
    public void updateTopicConfig(TopicConfig topic) {
        Wire.ask(() -> {
            String template = TopicValidator.AUTO_CREATE_TOPIC_KEY_TOPIC;
            Wire.requests().createTopic(address, template, topic, Wire.PATIENCE);
            return null;
        });
    }
}
