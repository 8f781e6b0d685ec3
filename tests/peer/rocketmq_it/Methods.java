package mqlake.it;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/**
 * Runs the tests of classes, whose names are separated by commas, or those of their methods that are named, and tells
 * how each ended.
 */
public final class Methods extends RunListener {
    private final Set<String> failed = new HashSet<>();
    private long began;

    public static void main(String[] arguments) throws Exception {
        Harness.begin();
        String[] names = arguments[0].split(",");
        Class<?>[] tests = new Class<?>[names.length];
        for (int i = 0; i < names.length; i++) {
            tests[i] = Class.forName(names[i]);
        }
        Set<String> wanted = new HashSet<>(Arrays.asList(arguments).subList(1, arguments.length));
        Request request = tests.length == 1 ? Request.aClass(tests[0]) : Request.classes(tests);
        if (!wanted.isEmpty()) {
            request = request.filterWith(new Only(wanted));
        }
        plan(request.getRunner().getDescription());
        JUnitCore core = new JUnitCore();
        core.addListener(new Methods());
        core.run(request);
        Harness.tell("finished");
        Runtime.getRuntime().halt(0); // clients that tests left running would go on
    }

    private static void plan(Description description) {
        if (description.isTest() && description.getMethodName() != null) {
            Harness.tell("planned", description.getMethodName());
        }
        description.getChildren().forEach(Methods::plan);
    }

    @Override
    public void testIgnored(Description description) {
        if (description.getMethodName() != null) {
            Harness.tell("ended", description.getMethodName(), "ignored", "0", "");
        }
    }

    @Override
    public void testStarted(Description description) {
        began = System.nanoTime();
        Harness.tell("began", description.getMethodName());
    }

    @Override
    public void testFailure(Failure failure) {
        String name = failure.getDescription().getMethodName();
        failure.getException().printStackTrace();
        if (name == null) { // of the class, before or after its tests
            Harness.tell("broken", failure.getException().toString());
        } else if (failed.add(name)) {
            Harness.tell("ended", name, "failed", seconds(), reason(failure.getException()));
        }
    }

    @Override
    public void testFinished(Description description) {
        String name = description.getMethodName();
        if (!failed.contains(name)) {
            Harness.tell("ended", name, "passed", seconds(), "");
        }
    }

    private String seconds() {
        return Double.toString((System.nanoTime() - began) / 1e9);
    }

    /** Says what went wrong, and in which line of the test. */
    private static String reason(Throwable thrown) {
        String place = Arrays.stream(thrown.getStackTrace())
            .filter(frame -> frame.getClassName().startsWith("org.apache.rocketmq.test."))
            .map(frame -> " at " + frame.getMethodName() + ":" + frame.getLineNumber())
            .findFirst().orElse("");
        return thrown + place;
    }

    /** Methods by name; a run of a parameterized test has its number in it: "test[1]". */
    private static final class Only extends Filter {
        private final Set<String> wanted;

        Only(Set<String> wanted) {
            this.wanted = wanted;
        }

        @Override
        public boolean shouldRun(Description description) {
            if (description.isTest()) {
                return wanted.contains(description.getMethodName());
            }
            return description.getChildren().stream().anyMatch(this::shouldRun);
        }

        @Override
        public String describe() {
            return String.join(", ", wanted);
        }
    }
}
