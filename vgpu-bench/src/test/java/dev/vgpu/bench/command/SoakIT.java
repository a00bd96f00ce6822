package dev.vgpu.bench.command;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The soak test itself, for seconds instead of hours, in two runs. */
class SoakIT {
  @TempDir Path temporary;

  private JsonNode soak(String... arguments) throws Exception {
    List<String> command = new ArrayList<>(Commands.java());
    command.addAll(List.of("dev.vgpu.cli.VgpuCommand", "soak", "--json", "--tenants", "16"));
    command.addAll(List.of("--out", temporary.resolve("results").toString()));
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().put("VGPU_HOME", System.getProperty("vgpu.home"));
    Path out = temporary.resolve("out");
    Path err = temporary.resolve("err");
    Process process = builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
    try {
      assertThat(process.waitFor(4, TimeUnit.MINUTES)).as("%s", said(err)).isTrue();
      assertThat(process.exitValue()).as("%s", said(err)).isIn(0, 1);
      return new ObjectMapper().readTree(Files.readString(out, UTF_8));
    } finally {
      process.destroy();
      process.waitFor();
    }
  }

  private static String said(Path file) throws Exception {
    return Files.readString(file, UTF_8);
  }

  @Test
  @Timeout(value = 9, unit = TimeUnit.MINUTES)
  void secondsOfItHoldAndAreGoneOnWith() throws Exception {
    JsonNode first = soak("--hours", "0.006");
    // Over a few seconds, shares depend on the machine more than on the scheduler.
    assertThat(first.path("failures"))
        .as("%s", first)
        .allMatch(failure -> failure.asText().matches("(fixed|burst)_held is .*"));
    assertThat(first.path("counts").path("seat_changes").asInt()).isPositive();
    assertThat(first.path("counts").path("kills").asInt()).isPositive();
    assertThat(first.path("samples").asInt()).isGreaterThan(1); // a busy machine is late with them
    for (String name : List.of("heap_mib", "threads", "descriptors", "pages", "disk_mib")) {
      assertThat(first.path(name).path("least").asDouble()).as(name).isPositive();
    }
    JsonNode second = soak("--hours", "0.002", "--append");
    assertThat(second.path("pieces").asInt()).isEqualTo(2);
    assertThat(second.path("samples").asInt()).isGreaterThan(first.path("samples").asInt());
    Path results = temporary.resolve("results");
    assertThat(results.resolve("soak.svg")).content(UTF_8).startsWith("<svg").endsWith("</svg>\n");
    assertThat(results.resolve("soak.txt")).content(UTF_8).contains("heap_mib");
  }
}
