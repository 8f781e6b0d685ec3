package mqlake.it;

import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.subscription.SubscriptionGroupManager;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** The consumer groups of a broker: they, and changes of them, are requested of it. */
final class RemoteGroups extends SubscriptionGroupManager {
    private final String address;

    RemoteGroups(BrokerController broker, String address) {
        super(broker, false);
        this.address = address;
    }

    @Override
    public SubscriptionGroupConfig findSubscriptionGroupConfig(String group) {
        return Wire.ask(() -> Wire.requests().getSubscriptionGroupConfig(address, group, Wire.PATIENCE));
    }

    @Override
    public void updateSubscriptionGroupConfig(SubscriptionGroupConfig group) {
        Wire.ask(() -> {
            Wire.requests().createSubscriptionGroup(address, group, Wire.PATIENCE);
            return null;
        });
    }
}
