import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.Closeable;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.StaticSessionCredentialsProvider;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.LitePushConsumer;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/** What the input may ask for. */
final class Operations {
    private final ClientServiceProvider provider = ClientServiceProvider.loadService();
    private final String endpoint;
    private final Map<String, Closeable> clients = new ConcurrentHashMap<>();
    private final Map<String, Seen> seen = new ConcurrentHashMap<>();
    private final Map<String, List<String>> asked = new ConcurrentHashMap<>();
    private final Map<String, Transaction> transactions = new ConcurrentHashMap<>();
    private final List<MessageView> receipts = Collections.synchronizedList(new ArrayList<>());

    Operations(String endpoint) {
        this.endpoint = endpoint;
    }

    Object run(String name, JsonObject wanted) throws Exception {
        switch (name) {
            case "producer": return producer(wanted);
            case "send": return send(wanted);
            case "end": return end(wanted);
            case "asked": return new ArrayList<>(asked.get(client(wanted)));
            case "recall": return recall(wanted);
            case "simple": return simple(wanted);
            case "receive": return receive(wanted);
            case "ack": return ack(wanted);
            case "hide": return hide(wanted);
            case "push": return push(wanted);
            case "lite_push": return litePush(wanted);
            case "follow": return follow(wanted);
            case "unfollow": return unfollow(wanted);
            case "seen": return seen(wanted);
            case "subscribe": return subscribe(wanted);
            case "close": return close(wanted);
            default: throw new UnsupportedOperationException(name);
        }
    }

    private static String client(JsonObject wanted) {
        return wanted.get("client").getAsString();
    }

    private ClientConfiguration configuration(JsonObject wanted) {
        int timeout = wanted.has("timeout") ? wanted.get("timeout").getAsInt() : 30;
        var builder = ClientConfiguration.newBuilder()
            .setEndpoints(endpoint)
            .setRequestTimeout(Duration.ofSeconds(timeout))
            .enableSsl(false);
        if (wanted.has("user")) {
            builder.setCredentialProvider(new StaticSessionCredentialsProvider(
                wanted.get("user").getAsString(), wanted.get("secret").getAsString()));
        }
        return builder.build();
    }

    private Object producer(JsonObject wanted) throws Exception {
        String name = wanted.get("name").getAsString();
        List<String> topics = new ArrayList<>();
        wanted.getAsJsonArray("topics").forEach(topic -> topics.add(topic.getAsString()));
        var builder = provider.newProducerBuilder()
            .setClientConfiguration(configuration(wanted))
            .setTopics(topics.toArray(new String[0]));
        List<String> questions = Collections.synchronizedList(new ArrayList<>());
        asked.put(name, questions);
        if (wanted.has("checks")) {
            builder.setTransactionChecker(message -> {
                String body = Seen.body(message);
                questions.add(body);
                if (body.startsWith("late commit")) {
                    return TransactionResolution.COMMIT;
                }
                return body.startsWith("late rollback") ? TransactionResolution.ROLLBACK : TransactionResolution.UNKNOWN;
            });
        }
        clients.put(name, builder.build());
        return null;
    }

    private Object send(JsonObject wanted) throws Exception {
        JsonObject message = wanted.getAsJsonObject("message");
        MessageBuilder builder = provider.newMessageBuilder().setTopic(message.get("topic").getAsString());
        int times = message.has("times") ? message.get("times").getAsInt() : 1;
        builder.setBody(message.get("body").getAsString().repeat(times).getBytes(StandardCharsets.UTF_8));
        if (message.has("tag")) {
            builder.setTag(message.get("tag").getAsString());
        }
        if (message.has("keys")) {
            JsonArray keys = message.getAsJsonArray("keys");
            String[] texts = new String[keys.size()];
            for (int index = 0; index < texts.length; index++) {
                texts[index] = keys.get(index).getAsString();
            }
            builder.setKeys(texts);
        }
        if (message.has("properties")) {
            for (Map.Entry<String, JsonElement> each : message.getAsJsonObject("properties").entrySet()) {
                builder.addProperty(each.getKey(), each.getValue().getAsString());
            }
        }
        if (message.has("group")) {
            builder.setMessageGroup(message.get("group").getAsString());
        }
        if (message.has("lite")) {
            builder.setLiteTopic(message.get("lite").getAsString());
        }
        if (message.has("delay")) {
            builder.setDeliveryTimestamp(System.currentTimeMillis() + message.get("delay").getAsLong() * 1000);
        }
        if (message.has("priority")) {
            builder.setPriority(message.get("priority").getAsInt());
        }
        Producer producer = (Producer) clients.get(client(wanted));
        Map<String, Object> sent = new LinkedHashMap<>();
        if (wanted.has("transaction")) {
            Transaction begun = producer.beginTransaction();
            transactions.put(wanted.get("transaction").getAsString(), begun);
            sent.put("id", producer.send(builder.build(), begun).getMessageId().toString());
            sent.put("recall", null);
            return sent;
        }
        var receipt = producer.send(builder.build());
        sent.put("id", receipt.getMessageId().toString());
        String handle = receipt.getRecallHandle();
        sent.put("recall", handle == null || handle.isEmpty() ? null : handle);
        return sent;
    }

    private Object end(JsonObject wanted) throws Exception {
        Transaction begun = transactions.remove(wanted.get("transaction").getAsString());
        if (wanted.get("commits").getAsBoolean()) {
            begun.commit();
        } else {
            begun.rollback();
        }
        return null;
    }

    private Object recall(JsonObject wanted) throws Exception {
        Producer producer = (Producer) clients.get(client(wanted));
        return producer.recallMessage(wanted.get("topic").getAsString(), wanted.get("handle").getAsString())
            .getMessageId().toString();
    }

    private static FilterExpression expression(String kind, String text) {
        return new FilterExpression(text, kind.equals("sql") ? FilterExpressionType.SQL92 : FilterExpressionType.TAG);
    }

    private static Map<String, FilterExpression> expressions(JsonObject wanted) {
        Map<String, FilterExpression> expressions = new HashMap<>();
        wanted.getAsJsonObject("subscriptions").entrySet().forEach(each -> {
            JsonArray pair = each.getValue().getAsJsonArray();
            expressions.put(each.getKey(), expression(pair.get(0).getAsString(), pair.get(1).getAsString()));
        });
        return expressions;
    }

    private Object simple(JsonObject wanted) throws Exception {
        int wait = wanted.has("wait") ? wanted.get("wait").getAsInt() : 5;
        clients.put(wanted.get("name").getAsString(), provider.newSimpleConsumerBuilder()
            .setClientConfiguration(configuration(wanted))
            .setConsumerGroup(wanted.get("group").getAsString())
            .setSubscriptionExpressions(expressions(wanted))
            .setAwaitDuration(Duration.ofSeconds(wait))
            .build());
        return null;
    }

    private Object receive(JsonObject wanted) throws Exception {
        SimpleConsumer consumer = (SimpleConsumer) clients.get(client(wanted));
        List<Map<String, Object>> received = new ArrayList<>();
        Duration hidden = Duration.ofSeconds(wanted.get("hidden").getAsLong());
        for (MessageView message : consumer.receive(wanted.get("most").getAsInt(), hidden)) {
            Map<String, Object> described = Seen.described(message);
            synchronized (receipts) {
                described.put("receipt", receipts.size());
                receipts.add(message);
            }
            received.add(described);
        }
        return received;
    }

    private Object ack(JsonObject wanted) throws Exception {
        ((SimpleConsumer) clients.get(client(wanted))).ack(receipts.get(wanted.get("receipt").getAsInt()));
        return null;
    }

    private Object hide(JsonObject wanted) throws Exception {
        ((SimpleConsumer) clients.get(client(wanted))).changeInvisibleDuration(
            receipts.get(wanted.get("receipt").getAsInt()), Duration.ofSeconds(wanted.get("seconds").getAsLong()));
        return null;
    }

    private Object push(JsonObject wanted) throws Exception {
        String name = wanted.get("name").getAsString();
        Seen listener = new Seen();
        seen.put(name, listener);
        clients.put(name, provider.newPushConsumerBuilder()
            .setClientConfiguration(configuration(wanted))
            .setConsumerGroup(wanted.get("group").getAsString())
            .setSubscriptionExpressions(expressions(wanted))
            .setMessageListener(listener)
            .build());
        return null;
    }

    private Object litePush(JsonObject wanted) throws Exception {
        String name = wanted.get("name").getAsString();
        Seen listener = new Seen();
        seen.put(name, listener);
        clients.put(name, provider.newLitePushConsumerBuilder()
            .setClientConfiguration(configuration(wanted))
            .setConsumerGroup(wanted.get("group").getAsString())
            .bindTopic(wanted.get("topic").getAsString())
            .setMessageListener(listener)
            .build());
        return null;
    }

    private Object follow(JsonObject wanted) throws Exception {
        ((LitePushConsumer) clients.get(client(wanted))).subscribeLite(wanted.get("lite").getAsString());
        return null;
    }

    private Object unfollow(JsonObject wanted) throws Exception {
        ((LitePushConsumer) clients.get(client(wanted))).unsubscribeLite(wanted.get("lite").getAsString());
        return null;
    }

    private Object seen(JsonObject wanted) {
        return seen.get(client(wanted)).from(wanted.has("begin") ? wanted.get("begin").getAsInt() : 0);
    }

    private Object subscribe(JsonObject wanted) throws Exception {
        String topic = wanted.get("topic").getAsString();
        FilterExpression wantedOnes = expression(wanted.get("kind").getAsString(), wanted.get("text").getAsString());
        Closeable client = clients.get(client(wanted));
        if (client instanceof PushConsumer) {
            ((PushConsumer) client).subscribe(topic, wantedOnes);
        } else {
            ((SimpleConsumer) client).subscribe(topic, wantedOnes);
        }
        return null;
    }

    private Object close(JsonObject wanted) throws Exception {
        clients.remove(client(wanted)).close();
        return null;
    }
}
