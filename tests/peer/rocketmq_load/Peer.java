import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * A client that is measured: it answers requests, one a line on standard input, with one JSON object
 * a line on standard output.
 *
 * A request is words joined by tabs: a name, the address of a name server, a topic, and numbers. The
 * Python program `benchmarks/client/peer.py` answers the same requests.
 */
public final class Peer {
    public static void main(String[] arguments) throws Exception {
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        // What libraries print must not mix with the answers.
        System.setOut(System.err);
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            Map<String, ?> answer;
            try {
                answer = answer(line.split("\t"));
            } catch (Throwable error) {
                answer = Map.of("error", error.toString());
            }
            answers.println(RemotingSerializable.toJson(answer, false));
        }
        // Clients leave threads behind that would keep the process alive.
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, ?> answer(String[] words) throws Exception {
        String names = words[1];
        String topic = words[2];
        switch (words[0]) {
            case "send":
                return Sends.inFlight(names, topic, number(words[3]), number(words[4]), number(words[5]));
            case "one by one":
                return Sends.oneByOne(names, topic, number(words[3]), number(words[4]));
            case "batches":
                return Sends.batches(
                    names, topic, number(words[3]), number(words[4]), number(words[5]), number(words[6]));
            case "push":
                return Backlog.push(names, topic, words[3], number(words[4]));
            case "pull":
                return Backlog.litePull(names, topic, words[3], number(words[4]));
            default:
                throw new IllegalArgumentException("unknown request " + words[0]);
        }
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }
}
