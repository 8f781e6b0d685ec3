package mqlake.it;

import java.nio.file.Paths;
import java.util.HashMap;
import java.util.List;
import java.util.ArrayList;
import java.util.Map;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.offset.ConsumerOffsetManager;
import org.apache.rocketmq.broker.pop.orderly.ConsumerOrderInfoManager;
import org.apache.rocketmq.broker.subscription.SubscriptionGroupManager;
import org.apache.rocketmq.broker.topic.TopicConfigManager;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.store.MessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** A broker, a process of its own, as tests see it: what they ask goes over the wire, if it can. */
public final class RemoteBroker extends BrokerController {
    private static final Map<String, RemoteBroker> BY_NAME = new HashMap<>();
    private static final List<RPCHook> HOOKS = new ArrayList<>();

    private final String address;
    private final BrokerConfig settings;
    private final MessageStoreConfig files;
    private final RemoteStore store;

    private RemoteBroker(String name, String address, BrokerConfig initial, MessageStoreConfig files) {
        super(initial, new NettyServerConfig(), new NettyClientConfig(), files);
        this.address = address;
        this.settings = Forwarded.settings(BrokerConfig.class, initial, (key, value) -> change(name, address, key, value));
        this.files = Forwarded.settings(MessageStoreConfig.class, files, (key, value) -> change(name, address, key, value));
        this.store = new RemoteStore(name, address);
    }

    /** Stands in for the broker of that name and address. */
    public static RemoteBroker at(String name, String address) {
        BrokerConfig settings = new BrokerConfig();
        settings.setBrokerName(name);
        settings.setBrokerIP1("127.0.0.1");
        settings.setNamesrvAddr(System.getProperty("mqlake.names"));
        MessageStoreConfig files = new MessageStoreConfig();
        files.setStorePathRootDir(Paths.get(System.getProperty("java.io.tmpdir"), "stub-of-" + name).toString());
        RemoteBroker made = new RemoteBroker(name, address, settings, files);
        BY_NAME.put(name, made);
        return made;
    }

    /** Starts the broker of these settings again, which has been shut down. */
    public static BrokerController started(BrokerConfig settings) {
        String name = settings.getBrokerName();
        Harness.demand("start", name);
        return BY_NAME.get(name);
    }

    /** Returns the hooks that were meant for brokers; clients in this process call them instead. */
    public static List<RPCHook> hooks() {
        return HOOKS;
    }

    private static void change(String name, String address, String setting, Object value) {
        Harness.tell("changed", name, setting, String.valueOf(value));
        try {
            Wire.requests().updateBrokerConfig(address, Wire.setting(setting, value), Wire.PATIENCE);
        } catch (Exception refused) {
            Harness.tell("refused", name, setting, refused.toString());
        }
    }

    @Override
    public String getBrokerAddr() {
        return address;
    }

    // The constructor of BrokerController calls some of these, before there is `store`.

    @Override
    public BrokerConfig getBrokerConfig() {
        return store == null ? super.getBrokerConfig() : settings;
    }

    @Override
    public MessageStoreConfig getMessageStoreConfig() {
        return store == null ? super.getMessageStoreConfig() : files;
    }

    @Override
    public MessageStore getMessageStore() {
        return store == null ? super.getMessageStore() : store.asMessageStore();
    }

    @Override
    public TopicConfigManager getTopicConfigManager() {
        return store == null ? super.getTopicConfigManager() : new RemoteTopics(this, address);
    }

    @Override
    public SubscriptionGroupManager getSubscriptionGroupManager() {
        return store == null ? super.getSubscriptionGroupManager() : new RemoteGroups(this, address);
    }

    @Override
    public ConsumerOffsetManager getConsumerOffsetManager() {
        return store == null ? super.getConsumerOffsetManager() : new RemoteOffsets(this, address);
    }

    @Override
    public ConsumerOrderInfoManager getConsumerOrderInfoManager() {
        return store == null ? super.getConsumerOrderInfoManager() : RemoteOrder.of(this);
    }

    @Override
    public void registerServerRPCHook(RPCHook hook) {
        if (!HOOKS.contains(hook)) {
            HOOKS.add(hook);
        }
    }

    /** Leaves it to the broker, which registers each change of its topics by itself. */
    @Override
    public synchronized void registerBrokerAll(boolean ordered, boolean oneway, boolean forced) {
    }

    @Override
    public void shutdown() {
        Harness.demand("stop", getBrokerConfig().getBrokerName());
    }
}
