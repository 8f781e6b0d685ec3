package mqlake.it;

import java.lang.reflect.Proxy;
import org.apache.rocketmq.broker.pop.orderly.ConsumerOrderInfoManager;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.header.NotificationRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.NotificationResponseHeader;

/** Whether a queue that is popped in order waits for messages that are not yet acknowledged. */
final class RemoteOrder {
    private RemoteOrder() {
    }

    static ConsumerOrderInfoManager of(RemoteBroker broker) {
        return (ConsumerOrderInfoManager) Proxy.newProxyInstance(
            ConsumerOrderInfoManager.class.getClassLoader(), new Class<?>[] {ConsumerOrderInfoManager.class},
            (self, method, arguments) -> {
                if (!method.getName().equals("checkBlock")) {
                    throw new UnsupportedOperationException(
                        "a broker in another process has no ConsumerOrderInfoManager." + method.getName());
                }
                return isBlocked(broker, (String) arguments[1], (String) arguments[2], (Integer) arguments[3]);
            });
    }

    /** A queue is blocked if there are messages from its group's offset on, and none for a pop in order. */
    private static boolean isBlocked(RemoteBroker broker, String topic, String group, int queue) throws Exception {
        String address = broker.getBrokerAddr();
        MessageQueue key = new MessageQueue(topic, broker.getBrokerConfig().getBrokerName(), queue);
        long end = Wire.requests().getMaxOffset(address, key, Wire.PATIENCE);
        if (broker.getConsumerOffsetManager().queryOffset(group, topic, queue) >= end) {
            return false;
        }
        NotificationRequestHeader header = new NotificationRequestHeader();
        header.setConsumerGroup(group);
        header.setTopic(topic);
        header.setQueueId(queue);
        header.setOrder(true);
        header.setPollTime(0);
        header.setBornTime(System.currentTimeMillis());
        RemotingCommand request = RemotingCommand.createRequestCommand(RequestCode.NOTIFICATION, header);
        RemotingCommand answer = Wire.requests().getRemotingClient().invokeSync(address, request, Wire.PATIENCE);
        NotificationResponseHeader found =
            (NotificationResponseHeader) answer.decodeCommandCustomHeader(NotificationResponseHeader.class);
        return !found.isHasMsg();
    }
}
