import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads a topic of one partition from its beginning to its end, into a file of JSON lines. */
final class Consume {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Consume() {
    }

    static String run(String bootstrap, String topic, String isolation, String file) throws Exception {
        var partition = new TopicPartition(topic, 0);
        try (var consumer = consumer(bootstrap, isolation); var lines = Files.newBufferedWriter(Path.of(file))) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    lines.write(JSON.writeValueAsString(json(record)));
                    lines.write('\n');
                }
            }
            return String.format("{\"endOffset\": %d}", end);
        }
    }

    /** Answers once the broker knows. */
    static String endOffset(String bootstrap, String topic) {
        var partition = new TopicPartition(topic, 0);
        try (var consumer = consumer(bootstrap, "read_uncommitted")) {
            return String.format("{\"endOffset\": %d}", consumer.endOffsets(List.of(partition)).get(partition));
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String isolation) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "isolation.level", isolation, "enable.auto.commit", false);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static ObjectNode json(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = JSON.createObjectNode();
        node.put("offset", record.offset());
        node.put("timestamp", record.timestamp());
        node.put("timestampType", record.timestampType().toString());
        node.put("leaderEpoch", record.leaderEpoch().orElse(-1));
        node.put("key", record.key());
        node.put("value", record.value());
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        return node;
    }
}
