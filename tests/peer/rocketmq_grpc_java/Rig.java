import java.io.Closeable;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.TransactionChecker;

/** The clients of one feature, closed together. */
final class Rig implements AutoCloseable {
    final String topic;
    private final ClientServiceProvider provider = ClientServiceProvider.loadService();
    private final ClientConfiguration configuration;
    private final List<Closeable> clients = new ArrayList<>();

    Rig(String endpoint, String topic) {
        this.topic = topic;
        this.configuration = ClientConfiguration.newBuilder()
            .setEndpoints(endpoint)
            .setRequestTimeout(Duration.ofSeconds(30))
            .enableSsl(false)
            .build();
    }

    Producer producer(TransactionChecker checker) throws Exception {
        var builder = provider.newProducerBuilder().setClientConfiguration(configuration).setTopics(topic);
        if (checker != null) {
            builder.setTransactionChecker(checker);
        }
        var producer = builder.build();
        clients.add(producer);
        return producer;
    }

    Collected push(String tags) throws Exception {
        var collected = new Collected();
        clients.add(provider.newPushConsumerBuilder()
            .setClientConfiguration(configuration)
            .setConsumerGroup("G_" + topic)
            .setSubscriptionExpressions(Map.of(topic, new FilterExpression(tags)))
            .setMessageListener(collected)
            .build());
        return collected;
    }

    SimpleConsumer simple() throws Exception {
        var consumer = provider.newSimpleConsumerBuilder()
            .setClientConfiguration(configuration)
            .setConsumerGroup("G_" + topic)
            .setSubscriptionExpressions(Map.of(topic, new FilterExpression("*")))
            .setAwaitDuration(Duration.ofSeconds(5))
            .build();
        clients.add(consumer);
        return consumer;
    }

    MessageBuilder message(String body) {
        return provider.newMessageBuilder().setTopic(topic).setBody(body.getBytes(StandardCharsets.UTF_8));
    }

    MessageBuilder message(String body, String tag) {
        return message(body).setTag(tag).addProperty("colour", "blue");
    }

    @Override
    public void close() throws Exception {
        for (Closeable client : clients) {
            client.close();
        }
    }
}
