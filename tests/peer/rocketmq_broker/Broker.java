import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.BrokerStartup;

/** Runs a broker until standard input ends, then stops it in good order. */
public final class Broker {
    public static void main(String[] arguments) throws Exception {
        BrokerController broker = BrokerStartup.start(BrokerStartup.createBrokerController(arguments));
        while (System.in.read() >= 0) {
            continue;
        }
        broker.shutdown();
        Runtime.getRuntime().halt(0);
    }
}
