import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.Map;

/** Time, and processor time of this process, since it was started. */
final class Stopwatch {
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private final long begun = System.nanoTime();
    private final long used = SYSTEM.getProcessCpuTime();

    /** Returns seconds and processor seconds since the start, and how many messages they were for. */
    Map<String, Object> measured(int messages) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("seconds", (System.nanoTime() - begun) / 1e9);
        found.put("cpu", (SYSTEM.getProcessCpuTime() - used) / 1e9);
        found.put("messages", messages);
        return found;
    }
}
