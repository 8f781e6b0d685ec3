import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Standard output and error of the threads that ask for their own; those that they start share it. */
final class Printed extends OutputStream {
    private final InheritableThreadLocal<ByteArrayOutputStream> own = new InheritableThreadLocal<>();

    static Printed install() {
        var printed = new Printed();
        var stream = new PrintStream(printed, true, StandardCharsets.UTF_8);
        System.setOut(stream);
        System.setErr(stream);
        return printed;
    }

    ByteArrayOutputStream begin() {
        var bytes = new ByteArrayOutputStream();
        own.set(bytes);
        return bytes;
    }

    @Override
    public void write(int oneByte) {
        ByteArrayOutputStream bytes = own.get();
        if (bytes != null) {
            bytes.write(oneByte);
        }
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
        ByteArrayOutputStream target = own.get();
        if (target != null) {
            target.write(bytes, offset, length);
        }
    }
}
