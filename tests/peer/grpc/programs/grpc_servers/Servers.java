import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.namesrv.NamesrvStartup;
import org.apache.rocketmq.proxy.ProxyStartup;

/** A name server, and a proxy in local mode, which runs a broker; until standard input ends. */
public final class Servers {
    private static final int MOST_TRIES = 1200;

    public static void main(String[] arguments) throws Exception {
        NamesrvController names = NamesrvStartup.main0(new String[] {"-c", arguments[0]});
        String address = "127.0.0.1:" + names.getNettyServerConfig().getListenPort();
        ProxyStartup.main(new String[] {"-n", address, "-bc", arguments[1], "-pc", arguments[2], "-pm", "LOCAL"});
        int tries = 0;
        while (names.getRouteInfoManager().getAllClusterInfo().getBrokerAddrTable().isEmpty()) {
            if (++tries > MOST_TRIES) {
                System.err.println("the broker does not register");
                Runtime.getRuntime().halt(1);
            }
            Thread.sleep(50);
        }
        System.out.println("registered");
        while (System.in.read() >= 0) {
            continue;
        }
        Runtime.getRuntime().halt(0);
    }
}
