package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.testing.TestSeed;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Virtual threads wait for their turn without pinning their carrier. They need a newer JDK than the
 * build's, which runs {@code VirtualThreads.java} from source.
 */
@Tag("newer-jdk")
class VirtualThreadsTest {
  @TempDir Path directory;

  @Test
  void virtualThreadsOfEveryKindEndAndNoneIsPinned() throws Exception {
    Path output = directory.resolve("output.txt");
    Process process = start(output);
    try {
      assertThat(process.waitFor(55, TimeUnit.SECONDS)).as("ended in time").isTrue();
    } finally {
      process.destroyForcibly().waitFor();
    }
    String printed = Files.readString(output, StandardCharsets.UTF_8);
    assertThat(process.exitValue()).as(printed).isZero();
    assertThat(printed).contains("threads=3000 ", " failed=0 pinned=0 control=true");
    assertThat(printed).doesNotContain("completed=0 ", "interrupted=0 ", "attempts=0 ");
  }

  /** A carrier would keep the binding for the next virtual thread that it runs. */
  @Test
  void aVirtualThreadIsNeverBoundWhereThisJvmIsUnderSeveral() throws Exception {
    Path output = directory.resolve("bound.txt");
    Process process =
        start(
            output,
            BoundVirtualThreads.class.getName(),
            Files.createDirectory(directory.resolve("run")).toString());
    try {
      assertThat(process.waitFor(55, TimeUnit.SECONDS)).as("ended in time").isTrue();
    } finally {
      process.destroyForcibly().waitFor();
    }
    String printed = Files.readString(output, StandardCharsets.UTF_8);
    assertThat(process.exitValue()).as(printed).isZero();
    assertThat(printed)
        .contains(
            "enter: refused: a virtual thread cannot be bound",
            "call: refused: a virtual thread cannot be bound",
            "submit: bound",
            "platform: bound",
            "left: none, running 0");
  }

  private Process start(Path output) throws IOException, URISyntaxException {
    Path source =
        Path.of(
            VirtualThreadsTest.class.getResource("/virtual-threads/VirtualThreads.java").toURI());
    return start(output, source.toString(), directory.resolve("pinned.jfr").toString());
  }

  private static Process start(Path output, String program, String argument) throws IOException {
    String home = System.getProperty("vgpu.newerJdk");
    assertThat(home).as("-Dvgpu.newerJdk: the home of a JDK of at least 21").isNotNull();
    ProcessBuilder builder =
        new ProcessBuilder(
            Path.of(home, "bin", "java").toString(),
            "-XX:+UseSerialGC",
            "-Xmx512m",
            "-cp",
            System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
            program,
            argument);
    builder.environment().put(TestSeed.VARIABLE, Long.toString(TestSeed.seed()));
    return builder.redirectErrorStream(true).redirectOutput(output.toFile()).start();
  }
}
