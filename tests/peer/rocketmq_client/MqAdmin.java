import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.commons.cli.CommandLine;
import org.apache.commons.cli.Options;
import org.apache.commons.cli.PosixParser;
import org.apache.rocketmq.srvutil.ServerUtil;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import org.apache.rocketmq.tools.command.SubCommand;

/** The commands of mqadmin, as its own main class runs them, but several at a time. */
final class MqAdmin {
    /** Commands name their clients after the millisecond in which they start, and fail where that, or a group in it, is taken. */
    private static final List<String> TAKEN = List.of("has created already", "has been created before");
    private static final int APART = 5;
    /** mqadmin waits for three to five seconds; what does not send a message may be asked again. */
    private static final String LATE = "RemotingTimeoutException";
    private static final int SECONDS = 60;
    private static boolean known;

    private final Printed printed;

    MqAdmin(Printed printed) {
        this.printed = printed;
    }

    List<String> all(String[][] commands) throws Exception {
        if (!known) {
            MQAdminStartup.initCommand();
            known = true;
        }
        var threads = Executors.newCachedThreadPool();
        List<Future<String>> running = new ArrayList<>();
        for (String[] command : commands) {
            running.add(threads.submit((Callable<String>) () -> run(command)));
            Thread.sleep(APART);
        }
        List<String> outputs = new ArrayList<>();
        for (Future<String> each : running) {
            try {
                outputs.add(each.get(SECONDS, TimeUnit.SECONDS));
            } catch (TimeoutException late) {
                outputs.add("no end within " + SECONDS + " s\n");
            }
        }
        threads.shutdownNow();
        return outputs;
    }

    private String run(String[] words) throws Exception {
        String output = once(words);
        boolean isSend = words[0].startsWith("send") || words[0].equals("checkMsgSendRT");
        while (isTaken(output) || !isSend && output.contains(LATE)) {
            Thread.sleep(ThreadLocalRandom.current().nextInt(APART, 20 * APART));
            output = once(words);
        }
        return output;
    }

    private static boolean isTaken(String output) {
        return TAKEN.stream().anyMatch(output::contains);
    }

    private String once(String[] words) {
        ByteArrayOutputStream output = printed.begin();
        try {
            var find = MQAdminStartup.class.getDeclaredMethod("findSubCommand", String.class);
            find.setAccessible(true);
            // A new one each time: some keep the client of their first run.
            var command = (SubCommand) find.invoke(null, words[0]).getClass().getDeclaredConstructor().newInstance();
            Options options = command.buildCommandlineOptions(ServerUtil.buildCommandlineOptions(new Options()));
            String[] rest = Arrays.copyOfRange(words, 1, words.length);
            CommandLine line = ServerUtil.parseCmdLine("mqadmin " + words[0], rest, options, new PosixParser());
            command.execute(line, options, null);
        } catch (Exception error) {
            error.printStackTrace();
        }
        return output.toString(StandardCharsets.UTF_8);
    }
}
