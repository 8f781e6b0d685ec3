import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

/** Makes topics of one partition. */
final class Topics {
    private Topics() {
    }

    /** {@code settings} are those of the topic, as {@code name=value,name=value}. */
    static String create(String bootstrap, String name, String settings) throws Exception {
        var configs = new HashMap<String, String>();
        for (String setting : settings.split(",")) {
            String[] parts = setting.split("=", 2);
            configs.put(parts[0], parts[1]);
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            var topic = new NewTopic(name, Optional.of(1), Optional.empty()).configs(configs);
            admin.createTopics(List.of(topic)).all().get();
        }
        return "{}";
    }
}
