import com.alibaba.fastjson2.JSONObject;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** One store directory, opened as a broker does, and on until nothing is left to dispatch. */
final class OpenStore {
    private static final int TEN_YEARS_IN_HOURS = 87_600;

    private final DefaultMessageStore store;
    private final long loadNanoseconds;
    private final long openNanoseconds;

    /** Opens a directory; settings have the names of broker.conf. */
    OpenStore(String directory, JSONObject settings) throws Exception {
        store = new DefaultMessageStore(config(directory, settings), new BrokerStatsManager("peer", false),
            (topic, queueId, offset, tagsCode, timestamp, filterBitMap, properties) -> { },
            new BrokerConfig(), new ConcurrentHashMap<>());
        long begin = System.nanoTime();
        if (!store.load()) {
            throw new IllegalStateException("RocketMQ could not load the store");
        }
        loadNanoseconds = System.nanoTime() - begin;
        store.start();
        waitUntilDispatched(store);
        openNanoseconds = System.nanoTime() - begin;
    }

    DefaultMessageStore get() {
        return store;
    }

    /** How long it took, and how many messages its queues have. */
    Map<String, Object> answer() throws Exception {
        long messages = 0;
        for (var queues : store.getConsumeQueueTable().values()) {
            for (var queue : queues.values()) {
                messages += queue.getMaxOffsetInQueue() - queue.getMinOffsetInQueue();
            }
        }
        return Map.of("seconds", openNanoseconds / 1e9, "load", loadNanoseconds / 1e9, "messages", messages);
    }

    void close() {
        store.shutdown();
    }

    static void waitUntilDispatched(DefaultMessageStore store) throws InterruptedException {
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(1);
        }
    }

    private static MessageStoreConfig config(String directory, JSONObject settings) {
        var config = new MessageStoreConfig();
        config.setStorePathRootDir(directory);
        config.setStorePathCommitLog(directory + "/commitlog");
        config.setTimerWheelEnable(false);
        // Retention stays out of the way, however old the files are and however full the disk.
        config.setFileReservedTime(TEN_YEARS_IN_HOURS);
        config.setDiskMaxUsedSpaceRatio(95);
        config.setCleanFileForciblyEnable(false);
        Properties known = MixAll.object2Properties(config);
        var given = new Properties();
        for (Map.Entry<String, Object> setting : settings.entrySet()) {
            if (!known.containsKey(setting.getKey())) {
                throw new IllegalArgumentException("RocketMQ has no setting " + setting.getKey());
            }
            given.setProperty(setting.getKey(), setting.getValue().toString());
        }
        MixAll.properties2Object(given, config);
        return config;
    }
}
