import com.alibaba.fastjson2.JSON;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;

/**
 * Answers requests, one a line on standard input, with one JSON object a line on standard output.
 *
 * A request is words joined by tabs: a name, then arguments, of which the last may be JSON.
 */
public final class Peer {
    private static OpenStore store;

    public static void main(String[] arguments) throws Exception {
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            Map<String, ?> answer;
            try {
                answer = answer(line.split("\t"));
            } catch (Exception error) {
                answer = Map.of("error", error.toString());
            }
            answers.println(JSON.toJSONString(answer));
        }
        // The store leaves threads behind that would keep the process alive.
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, ?> answer(String[] request) throws Exception {
        switch (request[0]) {
            case "open":
                store = new OpenStore(request[1], JSON.parseObject(request[2]));
                return store.answer();
            case "bounds":
                return Bounds.of(store.get());
            case "read":
                return ReadQueues.all(store.get());
            case "keys":
                return LookUp.keys(store.get(), JSON.parseArray(request[1]));
            case "ids":
                return LookUp.ids(store.get(), JSON.parseArray(request[1]));
            case "times":
                return LookUp.times(store.get(), JSON.parseArray(request[1]));
            case "append":
                return Append.all(store.get(), JSON.parseArray(request[1]));
            case "rewrite-config":
                return Config.rewrite(Path.of(request[1]));
            case "put-load":
                return new PutLoad(store.get(), JSON.parseObject(request[1])).run();
            case "scan":
                return Scan.run(store.get(), request[1].equals("decoded"));
            case "close":
                store.close();
                return Map.of();
            case "write-index":
                return KeyLookup.write(request[1], Integer.parseInt(request[2]));
            case "lookup":
                return KeyLookup.read(request[1], request[2]);
            case "version":
                return Map.of("java",
                    System.getProperty("java.vm.name") + " " + System.getProperty("java.runtime.version"));
            default:
                throw new IllegalArgumentException("unknown request " + request[0]);
        }
    }
}
