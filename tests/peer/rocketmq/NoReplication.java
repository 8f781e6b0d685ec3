import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.ha.DefaultHAService;

/** Takes the place of the service for slave brokers, which would listen on all of the machine's addresses. */
public final class NoReplication extends DefaultHAService {
    @Override
    public void init(DefaultMessageStore store) {
        defaultMessageStore = store;
    }

    @Override
    public void start() {
    }

    @Override
    public void shutdown() {
    }
}
