import com.google.gson.GsonBuilder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/**
 * Features of RocketMQ's gRPC client for Java, all at the same time.
 *
 * Features ENDPOINT PREFIX prints one JSON object with what happened in each.
 */
public final class Features {
    private static final Duration HIDDEN = Duration.ofSeconds(10);

    interface Feature {
        Map<String, ?> run(Rig rig) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Feature> features = new LinkedHashMap<>();
        features.put("send", Features::send);
        features.put("simple", Features::simple);
        features.put("delay", Features::delay);
        features.put("fifo", Features::fifo);
        features.put("transaction", Features::transaction);
        var threads = Executors.newFixedThreadPool(features.size());
        Map<String, CompletableFuture<Map<String, ?>>> running = new LinkedHashMap<>();
        features.forEach((name, feature) -> running.put(name, CompletableFuture.supplyAsync(
            () -> attempt(feature, new Rig(arguments[0], arguments[1] + "_" + name)), threads)));
        Map<String, Object> happened = new LinkedHashMap<>();
        running.forEach((name, found) -> happened.put(name, found.join()));
        System.out.println(new GsonBuilder().serializeNulls().create().toJson(happened));
        // Clients leave threads behind that would keep the process alive.
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, ?> attempt(Feature feature, Rig rig) {
        try (rig) {
            return feature.run(rig);
        } catch (Throwable error) {
            return Map.of("failure", error.toString());
        }
    }

    private static Map<String, ?> send(Rig rig) throws Exception {
        var collected = rig.push("TagA || TagB");
        var producer = rig.producer(null);
        Map<String, String> sent = new LinkedHashMap<>();
        for (int number = 0; number < 8; number++) {
            var message = rig.message("sync " + number, "TagA").setKeys("key" + number).build();
            sent.put("sync " + number, producer.send(message).getMessageId().toString());
        }
        Map<String, CompletableFuture<SendReceipt>> receipts = new LinkedHashMap<>();
        for (int number = 0; number < 8; number++) {
            String body = "async " + number;
            receipts.put(body, producer.sendAsync(rig.message(body, "TagB").build()));
        }
        receipts.forEach((body, receipt) -> sent.put(body, receipt.join().getMessageId().toString()));
        for (var each : List.of(Map.entry("another tag", "TagC"), Map.entry("retry", "TagA"),
                Map.entry("large ".repeat(2000), "TagA"))) {
            var receipt = producer.send(rig.message(each.getKey(), each.getValue()).build());
            sent.put(each.getKey(), receipt.getMessageId().toString());
        }
        collected.await(19);
        return Map.of("sent", sent, "consumed", collected.all());
    }

    private static Map<String, ?> simple(Rig rig) throws Exception {
        var producer = rig.producer(null);
        for (int number = 0; number < 5; number++) {
            producer.send(rig.message("" + number).build());
        }
        var consumer = rig.simple();
        var messages = receive(consumer, 5, false);
        var first = described(messages);
        Map<String, MessageView> byBody = new HashMap<>();
        messages.forEach(message -> byBody.put(Collected.body(message), message));
        consumer.ack(byBody.get("0"));
        consumer.ack(byBody.get("1"));
        consumer.changeInvisibleDuration(byBody.get("2"), Duration.ofSeconds(1));
        consumer.changeInvisibleDuration(byBody.get("3"), Duration.ofMinutes(5));
        consumer.ack(byBody.get("3"));
        var again = receive(consumer, 2, true);
        var left = consumer.receive(32, HIDDEN).stream().map(Collected::body).collect(Collectors.toList());
        return Map.of("first", first, "again", described(again), "left", left);
    }

    /** Acknowledges at once what is not to come again while it waits for others. */
    private static List<MessageView> receive(SimpleConsumer consumer, int count, boolean acknowledges)
            throws Exception {
        List<MessageView> messages = new ArrayList<>();
        Collected.until(count + " messages", () -> {
            for (var message : consumer.receive(32, HIDDEN)) {
                if (acknowledges) {
                    consumer.ack(message);
                }
                messages.add(message);
            }
            return messages.size() >= count;
        });
        return messages;
    }

    private static List<Map<String, Object>> described(List<MessageView> messages) {
        return messages.stream().map(Collected::describe).collect(Collectors.toList());
    }

    private static Map<String, ?> delay(Rig rig) throws Exception {
        var collected = rig.push("*");
        var producer = rig.producer(null);
        Map<String, Long> due = new LinkedHashMap<>();
        for (int seconds : new int[] {3, 5}) {
            String body = "after " + seconds;
            due.put(body, System.currentTimeMillis() + seconds * 1000L);
            producer.send(rig.message(body).setDeliveryTimestamp(due.get(body)).build());
        }
        collected.await(2);
        return Map.of("due", due, "consumed", collected.all());
    }

    private static Map<String, ?> fifo(Rig rig) throws Exception {
        var collected = rig.push("*");
        var producer = rig.producer(null);
        for (int number = 0; number < 6; number++) {
            for (String group : List.of("one", "two", "three")) {
                producer.send(rig.message(group + " " + number).setMessageGroup(group).build());
            }
        }
        collected.await(18);
        return Map.of("consumed", collected.all());
    }

    private static Map<String, ?> transaction(Rig rig) throws Exception {
        var collected = rig.push("*");
        var asked = Collections.newSetFromMap(new ConcurrentHashMap<String, Boolean>());
        var producer = rig.producer(message -> {
            String body = Collected.body(message);
            if (body.startsWith("late")) {  // RocketMQ may ask for those that were just ended, too
                asked.add(body);
            }
            if (!body.startsWith("late")) {  // its end is on the way
                return TransactionResolution.UNKNOWN;
            }
            return body.startsWith("late commit") ? TransactionResolution.COMMIT : TransactionResolution.ROLLBACK;
        });
        for (int number = 0; number < 2; number++) {
            for (String ending : List.of("commit", "rollback", "late commit", "late rollback")) {
                var transaction = producer.beginTransaction();
                producer.send(rig.message(ending + " " + number).build(), transaction);
                if (ending.equals("commit")) {
                    transaction.commit();
                } else if (ending.equals("rollback")) {
                    transaction.rollback();
                }
            }
        }
        collected.await(4);
        Collected.until("all questions", () -> asked.size() >= 4);
        return Map.of("asked", new HashSet<>(asked), "consumed", collected.all());
    }
}
