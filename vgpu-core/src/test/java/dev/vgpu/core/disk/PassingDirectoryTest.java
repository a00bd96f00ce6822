package dev.vgpu.core.disk;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A directory of temporary files, and the end of the JVM that works in it. */
@Timeout(60)
class PassingDirectoryTest {
  @TempDir Path temporary;

  /** A program that ends while a daemon thread of it makes files in such a directory. */
  static final class Program {
    private static final CountDownLatch works = new CountDownLatch(3);

    private Program() {}

    /** The JVM ends when this returns. */
    public static void main(String[] args) throws Exception {
      Thread thread = new Thread(Program::work);
      thread.setDaemon(true);
      thread.start();
      works.await();
    }

    private static void work() {
      try (PassingDirectory directory = new PassingDirectory("passing")) {
        System.out.println(directory.path());
        for (int i = 0; ; i++) {
          Path inner = Files.createDirectory(directory.path().resolve("" + i));
          Files.writeString(inner.resolve("file"), "text");
          works.countDown();
          LockSupport.parkNanos(1_000_000);
        }
      } catch (IOException e) {
        works.countDown(); // the directory has gone, as the JVM ends
      }
    }
  }

  @Test
  void isGoneOnceItIsClosed() throws IOException {
    Path path;
    try (PassingDirectory directory = new PassingDirectory("passing")) {
      path = directory.path();
      Files.writeString(path.resolve("file"), "text");
    }
    assertThat(path).doesNotExist();
  }

  @Test
  void isGoneWhenTheJvmEndsWhileAThreadWorksInIt() throws Exception {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:+UseSerialGC",
                "-Djava.io.tmpdir=" + temporary,
                "-cp",
                System.getProperty(
                    "surefire.test.class.path", System.getProperty("java.class.path")),
                Program.class.getName())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    String said = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertThat(process.waitFor()).isZero();
    assertThat(said).startsWith(temporary.resolve("passing").toString());
    try (Stream<Path> left = Files.list(temporary)) {
      assertThat(left).isEmpty();
    }
  }
}
