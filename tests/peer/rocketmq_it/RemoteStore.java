package mqlake.it;

import java.lang.reflect.Proxy;
import java.util.Map;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.store.MessageStore;

/** The store of a broker, as far as the broker's answers show it. */
final class RemoteStore {
    private final String broker;
    private final String address;

    RemoteStore(String broker, String address) {
        this.broker = broker;
        this.address = address;
    }

    MessageStore asMessageStore() {
        return (MessageStore) Proxy.newProxyInstance(
            MessageStore.class.getClassLoader(), new Class<?>[] {MessageStore.class},
            (self, method, arguments) -> {
                switch (method.getName()) {
                    case "getMaxOffsetInQueue":
                        return Wire.requests().getMaxOffset(address, queue(arguments), Wire.PATIENCE);
                    case "getMinOffsetInQueue":
                        return Wire.requests().getMinOffset(address, queue(arguments), Wire.PATIENCE);
                    case "dispatchBehindBytes":
                        return behind();
                    default:
                        throw new UnsupportedOperationException(
                            "a broker in another process has no MessageStore." + method.getName());
                }
            });
    }

    private MessageQueue queue(Object[] arguments) {
        return new MessageQueue((String) arguments[0], broker, (Integer) arguments[1]);
    }

    private long behind() throws Exception {
        Map<String, String> state = Wire.requests().getBrokerRuntimeInfo(address, Wire.PATIENCE).getTable();
        return Long.parseLong(state.get("dispatchBehindBytes"));
    }
}
