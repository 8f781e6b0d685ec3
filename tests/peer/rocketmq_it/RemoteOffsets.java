package mqlake.it;

import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.offset.ConsumerOffsetManager;
import org.apache.rocketmq.client.exception.OffsetNotFoundException;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper;
import org.apache.rocketmq.remoting.protocol.header.QueryConsumerOffsetRequestHeader;

/** The offsets of groups at a broker. */
final class RemoteOffsets extends ConsumerOffsetManager {
    private static final long NONE = -1;

    private final BrokerController broker;
    private final String address;

    RemoteOffsets(BrokerController broker, String address) {
        super(broker);
        this.broker = broker;
        this.address = address;
    }

    @Override
    public long queryOffset(String group, String topic, int queue) {
        QueryConsumerOffsetRequestHeader header = new QueryConsumerOffsetRequestHeader();
        header.setConsumerGroup(group);
        header.setTopic(topic);
        header.setQueueId(queue);
        header.setSetZeroIfNotFound(false);
        return Wire.ask(() -> {
            try {
                return Wire.requests().queryConsumerOffset(address, header, Wire.PATIENCE);
            } catch (OffsetNotFoundException none) {
                return NONE;
            }
        });
    }

    @Override
    public long queryPullOffset(String group, String topic, int queue) {
        MessageQueue key = new MessageQueue(topic, broker.getBrokerConfig().getBrokerName(), queue);
        return Wire.ask(() -> {
            OffsetWrapper found = Wire.requests()
                .getConsumeStats(address, group, topic, Wire.PATIENCE).getOffsetTable().get(key);
            return found == null ? NONE : found.getPullOffset();
        });
    }
}
