package dev.vgpu.cli.mig;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.cli.console.Lines;
import dev.vgpu.nvml.mig.MigState;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** The output of {@code mig list}; MigIT covers real instances. */
class MigListTest {
  private static final String NAME = "a-model-with-a-very-long-name-indeed-17";
  private static final GpuId DEVICE = new GpuId("MIG-5ea64b3e-6a9f-4c3e-9d1c-4a1f8f1a2b3c");
  private static final MigState CUT =
      new MigState(
          new GpuId("GPU-ac052a43-472f-4426-9dfc-c0b17715e7c4"),
          "NVIDIA H100 80GB HBM3",
          true,
          false,
          Optional.of(MigGeometry.ofSeven(MemorySize.ofGibibytes(80), 132)),
          List.of(
              new MigState.Instance(7, 9, 0, 4, 3, List.of(new MigState.Part(0, DEVICE, 3))),
              new MigState.Instance(8, 9, 4, 4, 3, List.of(new MigState.Part(0, DEVICE, 1)))));

  private static List<String> lines(int tableWidth) {
    return MigListCommand.lines(CUT, Map.of(DEVICE, NAME), Lines.WIDTH, tableWidth);
  }

  @Test
  void noLineIsLongerThanATerminalIsWide() {
    List<String> lines = lines(Lines.WIDTH);
    assertThat(lines).allMatch(line -> line.length() <= Lines.WIDTH);
    assertThat(lines).anyMatch(line -> line.contains("MIG-5e") && line.endsWith("deed-17"));
    assertThat(lines.get(0)).endsWith("MIG is on, and is");
    assertThat(lines).anyMatch(line -> line.contains("2 of 3 compute slices free"));
  }

  @Test
  void aPipeGetsWholeNames() {
    assertThat(lines(Integer.MAX_VALUE))
        .anyMatch(line -> line.contains(DEVICE.value()) && line.endsWith(NAME));
  }
}
