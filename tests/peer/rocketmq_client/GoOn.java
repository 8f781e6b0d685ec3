import java.util.List;
import java.util.Map;

/** A group consumes what is there for it and leaves; then more is sent, for the next time. */
final class GoOn {
    private static final int COUNT = 10;

    static Map<String, ?> run(String names, String topic, String group, String next) throws Exception {
        try (Rig rig = new Rig(names, topic)) {
            rig.awaitTopic(4);
            var collected = new Collected();
            var consumer = rig.consumer(group);
            consumer.subscribe(topic, "*");
            collected.listen(consumer);
            consumer.start();
            collected.await(COUNT);
            consumer.shutdown();
            send(rig, next);
            return Map.of("consumed", collected.bodies());
        }
    }

    static Map<String, ?> begin(String names, String topic, String first) throws Exception {
        try (Rig rig = new Rig(names, topic)) {
            rig.awaitTopic(4);
            send(rig, first);
            return Map.of("consumed", List.of());
        }
    }

    private static void send(Rig rig, String word) throws Exception {
        for (int number = 0; number < COUNT; number++) {
            rig.producer().send(rig.message(word + " " + number));
        }
    }
}
