import java.util.Arrays;

import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Runs the program that is named first with JSON headers, as other clients write them. RocketMQ's
 * own load programs ask for binary headers, but the first use of the setting counts.
 */
public final class JsonHeaders {
    private JsonHeaders() {
    }

    public static void main(String[] arguments) throws Exception {
        System.setProperty(RemotingCommand.SERIALIZE_TYPE_PROPERTY, "JSON");
        RemotingCommand.getSerializeTypeConfigInThisServer();
        String[] rest = Arrays.copyOfRange(arguments, 1, arguments.length);
        Class.forName(arguments[0]).getMethod("main", String[].class).invoke(null, (Object) rest);
    }
}
