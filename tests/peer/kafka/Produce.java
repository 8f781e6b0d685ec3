import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends records of all kinds: null keys and values, headers, in transactions and outside. */
final class Produce {
    private static final long FIRST_TIME = 1700000000000L;
    private static final int IN_TRANSACTION = 7;

    private Produce() {
    }

    /** {@code codec} is that of the batches; "transactions" commits some of them and aborts others. */
    static String run(String bootstrap, String topic, int count, String codec) {
        boolean transactions = codec.equals("transactions");
        var random = new Random(count);
        try (var producer = producer(bootstrap, codec, transactions)) {
            if (transactions) {
                producer.initTransactions();
            }
            for (int number = 0; number < count; number++) {
                if (transactions && number % IN_TRANSACTION == 0) {
                    producer.beginTransaction();
                }
                producer.send(record(topic, number, random));
                if (transactions && number % IN_TRANSACTION == IN_TRANSACTION - 1) {
                    producer.flush();
                    if (number / IN_TRANSACTION % 3 == 1) {
                        producer.abortTransaction();
                    } else {
                        producer.commitTransaction();
                    }
                }
                if (number % 50 == 49) {
                    producer.flush();
                }
            }
            if (transactions && count % IN_TRANSACTION != 0) {
                producer.commitTransaction();
            }
        }
        return "{}";
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String codec, boolean transactions) {
        var settings = new java.util.HashMap<String, Object>(Map.of(
            "bootstrap.servers", bootstrap,
            "compression.type", transactions ? "lz4" : codec));
        if (transactions) {
            settings.put("transactional.id", "peer");
        }
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, int number, Random random) {
        byte[] key = number % 5 == 0 ? null : ("key-" + number % 17).getBytes(StandardCharsets.UTF_8);
        byte[] value = number % 11 == 0 ? null : new byte[random.nextInt(number % 100 == 99 ? 5000 : 200)];
        if (value != null) {
            random.nextBytes(value);
        }
        List<Header> headers = number % 3 == 0
            ? List.of(new RecordHeader("ключ", key), new RecordHeader("", new byte[0]), new RecordHeader("none", (byte[]) null))
            : List.of();
        return new ProducerRecord<>(topic, 0, FIRST_TIME + number - random.nextInt(20), key, value, headers);
    }
}
