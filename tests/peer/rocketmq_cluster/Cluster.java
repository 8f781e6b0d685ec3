import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.namesrv.NamesrvStartup;

/** Runs a name server and a broker that is registered at it, until standard input ends. */
public final class Cluster {
    private static final int MOST_TRIES = 600;

    public static void main(String[] arguments) throws Exception {
        NamesrvController names = NamesrvStartup.main0(new String[] {"-c", arguments[0]});
        String[] options = {"-c", arguments[1]};
        BrokerController broker = BrokerStartup.start(BrokerStartup.createBrokerController(options));
        String name = broker.getBrokerConfig().getBrokerName();
        int tries = 0;
        while (!names.getRouteInfoManager().getAllClusterInfo().getBrokerAddrTable().containsKey(name)) {
            if (++tries > MOST_TRIES) {
                System.err.println("the broker cannot register");
                Runtime.getRuntime().halt(1);
            }
            broker.registerBrokerAll(true, false, true);
            Thread.sleep(100);
        }
        System.out.println("registered");
        while (System.in.read() >= 0) {
            continue;
        }
        broker.shutdown();
        names.shutdown();
        Runtime.getRuntime().halt(0);
    }
}
