import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.remoting.protocol.body.ConsumerOffsetSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.body.SubscriptionGroupWrapper;
import org.apache.rocketmq.remoting.protocol.body.TopicConfigSerializeWrapper;

/** Loads a configuration file as a broker does, and writes it again as a broker does. */
final class Config {
    private static final Map<String, Class<? extends RemotingSerializable>> KINDS = Map.of(
        "topics.json", TopicConfigSerializeWrapper.class,
        "consumerOffset.json", ConsumerOffsetSerializeWrapper.class,
        "subscriptionGroup.json", SubscriptionGroupWrapper.class);

    private Config() {
    }

    static Map<String, Object> rewrite(Path file) throws Exception {
        Class<? extends RemotingSerializable> kind = KINDS.get(file.getFileName().toString());
        RemotingSerializable table = RemotingSerializable.fromJson(Files.readString(file), kind);
        Files.writeString(file, table.toJson(true));
        return Map.of();
    }
}
