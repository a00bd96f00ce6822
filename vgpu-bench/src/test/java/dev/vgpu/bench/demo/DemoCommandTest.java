package dev.vgpu.bench.demo;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.bench.demo.process.ProcessesText;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.console.Lines;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.List;
import org.junit.jupiter.api.Test;

class DemoCommandTest {
  @Test
  void whatTheDemoFoundFitsATerminal() throws Exception {
    String json =
        """
        {"tenants": [{"name": "best-effort", "class": "OFFLINE", "asked_percent": 50,
          "held_three_percent": 49.96, "held_together_percent": 33.3, "preemptions": 123456,
          "memory_peak_bytes": 1073741824, "memory_quota_bytes": 1073741824,
          "backend": "mps"}],
         "machine_was_busy": true, "other_programs_cpu_percent": 80}
        """;
    List<String> lines = new ProcessesText(new ObjectMapper().readTree(json)).lines();
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    PrintStream stream = new PrintStream(out, true, UTF_8);
    DemoCommand.print(lines, new Console(stream, stream));
    assertThat(out.toString(UTF_8).lines())
        .allMatch(line -> line.length() <= Lines.WIDTH)
        .anyMatch(line -> line.matches("best-effort \\(offline\\)   .* 1024/1024 +123456"));
  }
}
