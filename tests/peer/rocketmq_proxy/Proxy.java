import org.apache.rocketmq.proxy.ProxyStartup;

/** The proxy for gRPC clients, which ends when its input does. */
public final class Proxy {
    public static void main(String[] arguments) throws Exception {
        ProxyStartup.main(arguments);
        while (System.in.read() >= 0) {
            continue;
        }
        Runtime.getRuntime().halt(0);
    }
}
