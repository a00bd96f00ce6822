package dev.vgpu.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.cli.text.Words;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.ServiceLoader;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The README's table of backend capabilities matches what the backends report. */
@Timeout(30)
class BackendTableTest {
  private static final String BEGIN = "<!-- backends: written by BackendTableTest -->\n";
  private static final String END = "<!-- end of backends -->";

  private record Anything(GpuId id) implements PhysicalGpu {
    @Override
    public String model() {
      return "test";
    }

    @Override
    public MemorySize memory() {
      return MemorySize.ofGibibytes(1);
    }

    @Override
    public MemorySize usableMemory() {
      return memory();
    }

    @Override
    public String provider() {
      return "test";
    }
  }

  @Test
  void readmeSaysWhatTheBackendsSay() throws IOException {
    String readme = Files.readString(Path.of("..", "README.md"));
    int from = readme.indexOf(BEGIN);
    int to = readme.indexOf(END);
    assertThat(from).isPositive();
    assertThat(readme.substring(from + BEGIN.length(), to))
        .as("the table in README.md; put this there")
        .isEqualTo(table());
  }

  private static String table() {
    List<String> lines = new ArrayList<>();
    lines.add("| backend | memory | compute | preemption | faults | for |");
    lines.add("|---|---|---|---|---|---|");
    lines.add(row("in-process", inProcess()));
    ServiceLoader.load(EnforcementBackend.class).stream()
        .map(ServiceLoader.Provider::get)
        .sorted(Comparator.comparingInt(EnforcementBackend::cost))
        .forEach(backend -> lines.add(row(backend.name(), backend.capabilities())));
    return String.join("\n", lines) + "\n";
  }

  private static Capabilities inProcess() {
    GpuPoolOptions alone =
        GpuPoolOptions.builder()
            .scope(GpuPoolOptions.Scope.THIS_JVM)
            .gpus(List.of(new Anything(new GpuId("table-of-backends"))))
            .build();
    try (GpuPool pool = GpuPool.open(alone)) {
      return pool.backends().stream()
          .filter(status -> status.name().equals("in-process"))
          .findFirst()
          .flatMap(BackendStatus::capabilities)
          .orElseThrow();
    }
  }

  private static String row(String name, Capabilities can) {
    return "| `"
        + name
        + "` | "
        + Words.word(can.memory())
        + " | "
        + Words.word(can.compute())
        + " | "
        + Words.word(can.preemption()).replace('-', ' ')
        + " | "
        + Words.word(can.faultIsolation())
        + " | "
        + can.worksFor().stream()
            .sorted()
            .map(Words::word)
            .map(word -> word.replace('-', ' '))
            .collect(Collectors.joining(", "))
        + " |";
  }
}
