import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.BrokerStartup;

/** Runs a broker until standard input ends; each byte of it has a slave copy its master's tables. */
public final class Broker {
    public static void main(String[] arguments) throws Exception {
        BrokerController broker = BrokerStartup.start(BrokerStartup.createBrokerController(arguments));
        while (System.in.read() >= 0) {
            System.in.skip(System.in.available());
            broker.getSlaveSynchronize().syncAll();
        }
        broker.shutdown();
        Runtime.getRuntime().halt(0);
    }
}
