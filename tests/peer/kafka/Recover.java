import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

/** Times {@code LogSegment.recover()} on the one segment of a directory that has no indexes. */
public final class Recover {
    private static final int PRODUCER_EXPIRATION = 24 * 60 * 60 * 1000;

    private Recover() {
    }

    /** As a program: for a cold start. */
    public static void main(String[] arguments) throws Exception {
        System.out.println(run(arguments[0], Integer.parseInt(arguments[1])));
        Runtime.getRuntime().halt(0);
    }

    static String run(String directory, int interval) throws Exception {
        Path path = Path.of(directory);
        var config = new LogConfig(Map.of("index.interval.bytes", String.valueOf(interval)));
        var partition = new TopicPartition("benchmark", 0);
        var producers = new ProducerStateManager(partition, path.toFile(), PRODUCER_EXPIRATION,
            new ProducerStateManagerConfig(PRODUCER_EXPIRATION, false), Time.SYSTEM);
        var checkpoint = new LeaderEpochCheckpointFile(
            path.resolve("leader-epoch-checkpoint").toFile(), new LogDirFailureChannel(1));
        var epochs = new LeaderEpochFileCache(partition, checkpoint, new KafkaScheduler(1));
        LogSegment segment = LogSegment.open(path.toFile(), baseOffset(path), config, Time.SYSTEM, true, 0, false, "");
        long begin = System.nanoTime();
        int cut = segment.recover(producers, epochs);
        long end = System.nanoTime();
        int entries = segment.offsetIndex().entries();
        segment.close();
        return String.format("{\"seconds\": %f, \"cut\": %d, \"entries\": %d}", (end - begin) / 1e9, cut, entries);
    }

    private static long baseOffset(Path directory) throws Exception {
        try (var files = Files.list(directory)) {
            return files.map(file -> file.getFileName().toString()).filter(name -> name.endsWith(".log"))
                .mapToLong(name -> Long.parseLong(name.substring(0, 20))).min().orElseThrow();
        }
    }
}
