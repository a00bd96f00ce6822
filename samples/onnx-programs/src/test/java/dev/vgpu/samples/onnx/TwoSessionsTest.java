package dev.vgpu.samples.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Runs each mode in its own process, because the test looks at the memory of the process. */
class TwoSessionsTest {
  private static final Pattern HELD = Pattern.compile("rows=(\\d+) heldMiB=(-?\\d+)");

  private static List<Integer> held(String how) throws Exception {
    ProcessBuilder command =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                TwoSessions.class.getName(),
                how)
            .redirectError(ProcessBuilder.Redirect.INHERIT);
    command.environment().put("ORT_DISABLE_TELEMETRY", "1"); // else a long class path crashes it
    Process process = command.start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    return HELD.matcher(output).results().map(found -> Integer.parseInt(found.group(2))).toList();
  }

  /** After the largest runs, only the memory of one small run per session may remain. */
  @Test
  void sessionsUnderVirtualGpusGiveBackWhatTheirLargestRunTook() throws Exception {
    List<Integer> plain = held("plain");
    List<Integer> ours = held("vgpu");

    assertThat(plain).hasSize(4);
    assertThat(ours).hasSize(4);
    assertThat(plain.get(3)).as("plain: %s", plain).isGreaterThan(250);
    assertThat(ours.get(3)).as("under virtual GPUs: %s", ours).isLessThan(plain.get(3) / 2);
  }
}
