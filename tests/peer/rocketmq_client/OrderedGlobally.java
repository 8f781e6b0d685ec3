import java.util.Map;

/** A topic of one queue: all of it is in order, whoever consumes. */
final class OrderedGlobally implements Features.Feature {
    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(1);
        for (int number = 0; number < 20; number++) {
            rig.producer().send(rig.message("0 " + number));
        }
        var collected = new Collected();
        Ordered.consume(rig, collected);
        Ordered.consume(rig, collected);
        collected.await(20);
        return Map.of("consumed", collected.all());
    }
}
