import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import org.apache.rocketmq.acl.common.AclException;
import org.apache.rocketmq.acl.plain.PlainAccessValidator;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/** Decides about requests by ACL 1.0. Each line of the input is a directory to load, or a request. */
public class Verdicts {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PlainAccessValidator validator = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject given = JSON.parseObject(line);
            String outcome = "allowed";
            try {
                if (given.containsKey("home")) {
                    validator = null;
                    System.setProperty("rocketmq.home.dir", given.getString("home"));
                    validator = new PlainAccessValidator();
                } else {
                    validator.validate(validator.parse(request(given), given.getString("from")));
                }
            } catch (AclException refusal) {
                outcome = "refused: " + refusal.getMessage();
            } catch (Throwable failure) {
                outcome = "failed: " + failure;
            }
            out.println(JSON.toJSONString(outcome));
        }
        System.exit(0);
    }

    private static RemotingCommand request(JSONObject given) {
        RemotingCommand found = RemotingCommand.createRequestCommand(given.getIntValue("code"), null);
        HashMap<String, String> fields = new HashMap<>();
        JSONObject listed = given.getJSONObject("fields");
        for (String name : listed.keySet()) {
            fields.put(name, listed.getString(name));
        }
        found.setExtFields(fields);
        found.setBody(Base64.getDecoder().decode(given.getString("body")));
        return found;
    }
}
