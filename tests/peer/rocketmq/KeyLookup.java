import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.store.index.IndexFile;

/** Writes an index file of RocketMQ's default size, and times look-ups in it. */
final class KeyLookup {
    private static final int SLOTS = 5_000_000;
    private static final int MAX_ENTRIES = 20_000_000;
    private static final int RECORD_SIZE = 1024;
    private static final long BEGIN_TIMESTAMP = 1_767_225_600_000L;
    private static final int MAX_RESULTS = 32;

    private KeyLookup() {
    }

    /** Puts keys `topic-0#key-0000000000`, … until `entries` are in. */
    static Map<String, Object> write(String path, int entries) throws Exception {
        IndexFile file = new IndexFile(path, SLOTS, MAX_ENTRIES, 0, 0);
        long begin = System.nanoTime();
        for (int i = 0; i < entries; i++) {
            String key = String.format("topic-0#key-%010d", i);
            if (!file.putKey(key, (long) i * RECORD_SIZE, BEGIN_TIMESTAMP + i / 100)) {
                throw new IllegalStateException("the index file is full after " + i + " entries");
            }
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        file.shutdown();
        return Map.of("seconds", seconds, "entries", entries);
    }

    /** Looks up each line of a file of keys: once all in a row, then each with its own stop watch. */
    static Map<String, Object> read(String path, String keysPath) throws Exception {
        IndexFile file = new IndexFile(path, SLOTS, MAX_ENTRIES, 0, 0);
        file.load();
        // Read twice: a String keeps its hash code once it has been asked for.
        double together = together(file, Files.readAllLines(Path.of(keysPath)));
        Map<String, Object> answer = each(file, Files.readAllLines(Path.of(keysPath)));
        answer.put("seconds", together);
        return answer;
    }

    private static double together(IndexFile file, List<String> keys) {
        long begin = System.nanoTime();
        for (String key : keys) {
            List<Long> offsets = new ArrayList<>();
            file.selectPhyOffset(offsets, key, MAX_RESULTS, 0, Long.MAX_VALUE);
        }
        return (System.nanoTime() - begin) / 1e9;
    }

    private static Map<String, Object> each(IndexFile file, List<String> keys) {
        long[] nanoseconds = new long[keys.size()];
        long found = 0;
        long sum = 0;
        for (int i = 0; i < nanoseconds.length; i++) {
            List<Long> offsets = new ArrayList<>();
            long begin = System.nanoTime();
            file.selectPhyOffset(offsets, keys.get(i), MAX_RESULTS, 0, Long.MAX_VALUE);
            nanoseconds[i] = System.nanoTime() - begin;
            found += offsets.size();
            for (long offset : offsets) {
                sum += offset;
            }
        }
        Arrays.sort(nanoseconds);
        Map<String, Object> answer = new HashMap<>();
        answer.put("median", nanoseconds[nanoseconds.length / 2] / 1e9);
        answer.put("p99", nanoseconds[nanoseconds.length * 99 / 100] / 1e9);
        answer.put("found", found);
        answer.put("offsetSum", sum);
        return answer;
    }
}
