package mqlake.it;

import java.util.Map;
import javassist.util.proxy.MethodHandler;
import javassist.util.proxy.Proxy;
import javassist.util.proxy.ProxyFactory;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.body.ConsumeQueueData;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageFilter;
import org.apache.rocketmq.store.MessageStore;
import sun.reflect.ReflectionFactory;

/** The store of a broker, as far as the broker's answers show it. */
final class RemoteStore {
    private final String broker;
    private final String address;
    private final MessageStore asMessageStore;

    RemoteStore(String broker, String address) {
        this.broker = broker;
        this.address = address;
        this.asMessageStore = proxy((self, method, proceed, arguments) -> answer(method.getName(), arguments));
    }

    MessageStore asMessageStore() {
        return asMessageStore;
    }

    private Object answer(String method, Object[] arguments) throws Exception {
        switch (method) {
            case "getMaxOffsetInQueue":
                return Wire.requests().getMaxOffset(address, queue(arguments), Wire.PATIENCE);
            case "getMinOffsetInQueue":
                return Wire.requests().getMinOffset(address, queue(arguments), Wire.PATIENCE);
            case "dispatchBehindBytes":
                return behind();
            case "estimateMessageCount":
                return matches(queue(arguments), (Long) arguments[2], (Long) arguments[3], (MessageFilter) arguments[4]);
            default:
                throw new UnsupportedOperationException("a broker in another process has no MessageStore." + method);
        }
    }

    private MessageQueue queue(Object[] arguments) {
        return new MessageQueue((String) arguments[0], broker, (Integer) arguments[1]);
    }

    /** Counts the messages of the broker that pass the filter, which is an object of the test. */
    private long matches(MessageQueue queue, long from, long to, MessageFilter filter) throws Exception {
        String topic = queue.getTopic();
        int count = Math.toIntExact(to - from);
        long matched = 0;
        for (ConsumeQueueData entry : Wire.requests()
            .queryConsumeQueue(address, topic, queue.getQueueId(), from, count, null, Wire.PATIENCE)
            .getQueueData()) {
            if (filter.isMatchedByConsumeQueue(entry.getTagsCode(), null)
                && filter.isMatchedByCommitLog(null, properties(topic, entry.getPhysicOffset()))) {
                matched++;
            }
        }
        return matched;
    }

    private Map<String, String> properties(String topic, long physicalOffset) throws Exception {
        return Wire.requests().viewMessage(address, topic, physicalOffset, Wire.PATIENCE).getProperties();
    }

    private long behind() throws Exception {
        Map<String, String> state = Wire.requests().getBrokerRuntimeInfo(address, Wire.PATIENCE).getTable();
        return Long.parseLong(state.get("dispatchBehindBytes"));
    }

    /** Returns a DefaultMessageStore, since some tests expect that class; no constructor opens files for it. */
    private static MessageStore proxy(MethodHandler handler) {
        ProxyFactory factory = new ProxyFactory();
        factory.setSuperclass(DefaultMessageStore.class);
        factory.setFilter(method -> method.getDeclaringClass() != Object.class);
        try {
            Object store = ReflectionFactory.getReflectionFactory()
                .newConstructorForSerialization(factory.createClass(), Object.class.getDeclaredConstructor())
                .newInstance();
            ((Proxy) store).setHandler(handler);
            return (MessageStore) store;
        } catch (ReflectiveOperationException thrown) {
            throw new IllegalStateException(thrown);
        }
    }
}
