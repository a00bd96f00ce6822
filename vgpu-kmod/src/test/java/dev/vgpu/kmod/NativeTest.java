package dev.vgpu.kmod;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.testing.TestSeed;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs the C tests of the kernel module's core, which need a C compiler and no kernel headers. */
@Timeout(value = 660, unit = TimeUnit.SECONDS) // compiles, and runs under sanitizers
class NativeTest {
  private static final Path TESTS = Path.of("src/test/c");

  @TempDir Path work;

  @ParameterizedTest
  @ValueSource(strings = {"plain", "asan"})
  void ledgerAndFiltersKeepTheirPromises(String kind) throws Exception {
    String output = succeed("sh", TESTS.resolve("run.sh").toString(), kind, work.toString());
    assertThat(output).contains("ok   charged", "ok   corpus", "ok   threads");
    if (kind.equals("plain")) {
      assertThat(output).contains("ok   interposer", "ok   programs");
    }
  }

  @Test
  void threadsShareTheLedger() throws Exception {
    String output = succeed("sh", TESTS.resolve("run.sh").toString(), "tsan", work.toString());
    assertThat(output).contains("ok   threads").doesNotContain("WARNING: ");
  }

  /** A few seconds of random requests. A command runs ten million; see CONTRIBUTING.md. */
  @Test
  void randomRequestsBreakNothing() throws Exception {
    String fuzz = TESTS.resolve("fuzz.sh").toString();
    String seed = Long.toString(TestSeed.seed());
    assertThat(succeed("sh", fuzz, work.toString(), "200000", seed)).contains("ok   fuzz");
  }

  private String succeed(String... command) throws IOException, InterruptedException {
    List<String> words = List.of(command);
    Path output = work.resolve("output.txt");
    ProcessBuilder builder = new ProcessBuilder(words);
    builder.environment().put(TestSeed.VARIABLE, Long.toString(TestSeed.seed()));
    builder.environment().remove("LD_PRELOAD");
    builder.redirectErrorStream(true).redirectOutput(output.toFile());
    Process process = builder.start();
    boolean ended = process.waitFor(600, TimeUnit.SECONDS);
    if (!ended) {
      process.destroyForcibly();
    }
    String text = new String(Files.readAllBytes(output), StandardCharsets.UTF_8);
    assertThat(ended && process.exitValue() == 0).as("%s%n%s", words, text).isTrue();
    return text;
  }
}
