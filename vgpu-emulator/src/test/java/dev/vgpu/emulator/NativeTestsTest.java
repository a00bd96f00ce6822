package dev.vgpu.emulator;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Builds the C tests and runs them: plain, with pages of 64 KiB, and under the sanitizers. */
@Execution(ExecutionMode.CONCURRENT)
class NativeTestsTest {
  @ParameterizedTest
  @ValueSource(strings = {"plain", "large-pages", "address", "thread"})
  @Timeout(value = 660, unit = TimeUnit.SECONDS)
  void nativeTestsPass(String variant) throws IOException, InterruptedException {
    Path module = Path.of("").toAbsolutePath();
    Process process =
        new ProcessBuilder(
                "sh",
                "src/test/c/run.sh",
                module.resolve("target/native-tests").toString(),
                variant)
            .directory(module.toFile())
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
  }
}
