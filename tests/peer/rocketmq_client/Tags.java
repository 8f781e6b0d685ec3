import java.util.Map;

/** A subscription to two tags of three; what else comes behind it shows that the third was left out. */
final class Tags implements Features.Feature {
    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(1);
        for (int number = 0; number < 10; number++) {
            for (String tag : new String[] {"TagA", "TagB", "TagC"}) {
                rig.producer().send(Rig.message(rig.topic, tag, tag + " " + number));
            }
        }
        var collected = new Collected();
        var consumer = rig.consumer("G_" + rig.topic);
        consumer.subscribe(rig.topic, "TagA || TagC");
        collected.listen(consumer);
        consumer.start();
        collected.await(20);
        return Map.of("consumed", collected.bodies());
    }
}
