import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.queue.ConsumeQueueInterface;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** Times how RocketMQ makes its derived files from a commit log: load, start, dispatch until caught up. */
final class Rebuild {
    private Rebuild() {
    }

    static String run(String directory, int segmentSize, int haPort) throws Exception {
        DefaultMessageStore store = open(directory, segmentSize, haPort);
        long begin = System.nanoTime();
        if (!store.load()) {
            throw new IllegalStateException("RocketMQ could not load the store");
        }
        long loaded = System.nanoTime();
        store.start();
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(1);
        }
        long end = System.nanoTime();
        long messages = count(store);
        long maxOffset = store.getMaxPhyOffset();
        store.shutdown();
        return String.format("{\"seconds\": %f, \"load\": %f, \"messages\": %d, \"maxOffset\": %d}",
            (end - begin) / 1e9, (loaded - begin) / 1e9, messages, maxOffset);
    }

    private static DefaultMessageStore open(String directory, int segmentSize, int haPort) throws Exception {
        var config = new MessageStoreConfig();
        config.setStorePathRootDir(directory);
        config.setStorePathCommitLog(directory + "/commitlog");
        config.setMappedFileSizeCommitLog(segmentSize);
        config.setHaListenPort(haPort);
        config.setTimerWheelEnable(false);
        config.setCleanFileForciblyEnable(false);
        return new DefaultMessageStore(config, new BrokerStatsManager("benchmark", false),
            (topic, queueId, offset, tagsCode, timestamp, filterBitMap, properties) -> { },
            new BrokerConfig(), new ConcurrentHashMap<>());
    }

    private static long count(DefaultMessageStore store) {
        long messages = 0;
        for (ConcurrentMap<Integer, ConsumeQueueInterface> queues : store.getConsumeQueueTable().values()) {
            for (ConsumeQueueInterface queue : queues.values()) {
                messages += queue.getMaxOffsetInQueue();
            }
        }
        return messages;
    }
}
