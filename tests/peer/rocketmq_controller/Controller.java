import org.apache.rocketmq.controller.ControllerManager;
import org.apache.rocketmq.controller.ControllerStartup;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.namesrv.NamesrvStartup;

/** Runs a name server and a controller that leads its group of one, until standard input ends. */
public final class Controller {
    private static final int MOST_TRIES = 600;

    public static void main(String[] arguments) throws Exception {
        NamesrvController names = NamesrvStartup.main0(new String[] {"-c", arguments[0]});
        String[] options = {"-c", arguments[1]};
        ControllerManager controller = ControllerStartup.main0(options);
        int tries = 0;
        while (!controller.getController().isLeaderState()) {
            if (++tries > MOST_TRIES) {
                System.err.println("the controller does not become the leader");
                Runtime.getRuntime().halt(1);
            }
            Thread.sleep(100);
        }
        System.out.println("leads");
        while (System.in.read() >= 0) {
            continue;
        }
        controller.shutdown();
        names.shutdown();
        Runtime.getRuntime().halt(0);
    }
}
