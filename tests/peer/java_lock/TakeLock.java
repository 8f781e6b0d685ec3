import java.io.RandomAccessFile;
import java.nio.channels.FileLock;

/** Takes a file's lock as RocketMQ (its first byte) or Kafka (all of it) does, until input ends. */
public class TakeLock {
    public static void main(String[] arguments) throws Exception {
        try (RandomAccessFile file = new RandomAccessFile(arguments[0], "rw")) {
            boolean isWhole = arguments[1].equals("whole");
            FileLock lock =
                isWhole ? file.getChannel().tryLock() : file.getChannel().tryLock(0, 1, false);
            System.out.println(lock == null ? "refused" : "locked");
            while (lock != null && System.in.read() >= 0) {}
        }
    }
}
