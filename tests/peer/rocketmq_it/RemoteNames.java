package mqlake.it;

import java.util.Collections;
import java.util.List;
import org.apache.rocketmq.common.namesrv.NamesrvConfig;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;

/** The name server, a process of its own, as tests see it. */
public final class RemoteNames extends NamesrvController {
    private final NamesrvConfig settings;

    public RemoteNames(String address) {
        super(new NamesrvConfig(), new NettyServerConfig());
        this.settings = settings(address);
    }

    @Override
    public NamesrvConfig getNamesrvConfig() {
        return settings;
    }

    private static NamesrvConfig settings(String address) {
        List<String> servers = Collections.singletonList(address);
        return Forwarded.settings(NamesrvConfig.class, new NamesrvConfig(), (name, value) -> {
            Harness.tell("changed", "namesrv", name, String.valueOf(value));
            Wire.ask(() -> {
                Wire.requests().updateNameServerConfig(Wire.setting(name, value), servers, Wire.PATIENCE);
                return null;
            });
        });
    }
}
