package mqlake.it;

import java.util.Properties;
import java.util.concurrent.Callable;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.impl.MQClientManager;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;

/** Requests to the processes that stand in for what the tests reach in their own process. */
final class Wire {
    static final long PATIENCE = 10_000; // milliseconds

    private static MQClientAPIImpl requests;

    private Wire() {
    }

    static synchronized MQClientAPIImpl requests() throws MQClientException {
        if (requests == null) {
            ClientConfig config = new ClientConfig();
            config.setNamesrvAddr(System.getProperty("mqlake.names"));
            config.setInstanceName("harness");
            MQClientInstance client = MQClientManager.getInstance().getOrCreateMQClientInstance(config);
            client.start();
            requests = client.getMQClientAPIImpl();
        }
        return requests;
    }

    /** Returns what a request returns; those who call it cannot throw what requests throw. */
    static <T> T ask(Callable<T> request) {
        try {
            return request.call();
        } catch (RuntimeException thrown) {
            throw thrown;
        } catch (Exception thrown) {
            throw new IllegalStateException(thrown);
        }
    }

    static Properties setting(String name, Object value) {
        Properties properties = new Properties();
        properties.setProperty(name, String.valueOf(value));
        return properties;
    }
}
