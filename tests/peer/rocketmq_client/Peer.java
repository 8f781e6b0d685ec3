import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Answers requests, one a line on standard input, with one JSON object a line on standard output.
 *
 * A request is words joined by tabs: a name, the address of a name server, and JSON.
 */
public final class Peer {
    private static final Members MEMBERS = new Members();
    private static Held held;
    private static Producers producers;

    public static void main(String[] arguments) throws Exception {
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        var printed = Printed.install();
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            Map<String, ?> answer;
            try {
                answer = answer(line.split("\t"), printed);
            } catch (Throwable error) {
                answer = Map.of("error", error.toString());
            }
            answers.println(RemotingSerializable.toJson(answer, false));
        }
        // Clients leave threads behind that would keep the process alive.
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, ?> answer(String[] request, Printed printed) throws Exception {
        System.setProperty("rocketmq.namesrv.addr", request[1]);
        String[][] lists = RemotingSerializable.fromJson(request[2], String[][].class);
        switch (request[0]) {
            case "mqadmin":
                return Map.of("printed", new MqAdmin(printed).all(lists));
            case "hold":
                held = new Held(request[1], lists[0][0], lists[0][1], lists[0][2]);
                return held.last();
            case "let go":
                held.close();
                return Map.of();
            case "begin":
                return GoOn.begin(request[1], lists[0][0], lists[0][1]);
            case "go on":
                return GoOn.run(request[1], lists[0][0], lists[0][1], lists[0][2]);
            case "join":
                return MEMBERS.join(request[1], lists[0][0], lists[0][1], lists[0][2], lists[0][3]);
            case "leave":
                return MEMBERS.leave(lists[0][0]);
            case "events":
                return MEMBERS.events();
            case "send":
                return Traffic.send(request[1], lists[0][0], Integer.parseInt(lists[0][1]));
            case "produce":
                producers = new Producers(request[1], lists[0][0], Integer.parseInt(lists[0][1]));
                return Map.of();
            case "produced":
                return producers.take();
            case "produce no more":
                return producers.stop();
            case "lag":
                return Traffic.lag(request[1], lists[0][0], lists[0][1], Integer.parseInt(lists[0][2]));
            case "die":
                return Traffic.die(request[1], lists[0][0], lists[0][1]);
            case "exporter":
                try (var exporter = new Exporter(request[1])) {
                    return exporter.all();
                }
            case "dashboard":
                try (var dashboard = new Dashboard(request[1], lists[0])) {
                    return dashboard.all();
                }
            case "features":
                return new Features(request[1]).all(lists);
            case "examples":
                return new Examples(printed).all(lists);
            default:
                throw new IllegalArgumentException("unknown request " + request[0]);
        }
    }
}
