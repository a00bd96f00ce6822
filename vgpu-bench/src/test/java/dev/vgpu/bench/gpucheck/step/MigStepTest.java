package dev.vgpu.bench.gpucheck.step;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.MemorySize;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class MigStepTest {
  private static final MigGeometry TABLE = MigGeometry.ofSeven(MemorySize.ofGibibytes(80), 132);

  @Test
  void whatIsAsInTheTableIsNoDifference() {
    assertThat(MigStep.differences(TABLE, TABLE)).isEmpty();
  }

  @Test
  void eachDifferenceNamesBoth() {
    List<MigProfile> told = new ArrayList<>();
    for (MigProfile row : TABLE.profiles()) {
      if (row.id() == 9) {
        told.add(new MigProfile(9, "3g.40gb", 3, 4, 2, List.of(4), row.memory(), 48));
      } else if (row.id() != 15) {
        told.add(row);
      }
    }
    told.add(new MigProfile(47, "1g.20gb+gfx", 1, 2, 4, List.of(0), MemorySize.ZERO, 16));
    assertThat(MigStep.differences(new MigGeometry(7, 8, told), TABLE))
        .containsExactly(
            "profile 9 (3g.40gb) places: NVML says [4], the table [0, 4]",
            "profile 9 (3g.40gb) SMs: NVML says 48, the table 60",
            "profile 47 (1g.20gb+gfx) is not in the table",
            "profile 15 (1g.20gb) of the table is not there");
  }
}
