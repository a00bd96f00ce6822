package dev.vgpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.vgpu.GpuPoolOptions.LeakTracking;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class GpuPoolOptionsTest {
  private final GpuPoolOptions.Builder builder = GpuPoolOptions.builder();

  private record Gpu(GpuId id, String model) implements PhysicalGpu {
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

  private static Gpu gpu(String id, String model) {
    return new Gpu(new GpuId(id), model);
  }

  @Test
  void defaultsAreTheDocumentedOnes() {
    GpuPoolOptions options = GpuPoolOptions.defaults();
    assertThat(options.gpus()).isEmpty();
    assertThat(options.gpuSettings()).isEqualTo(GpuSettings.defaults());
    assertThat(options.settingsOfSome()).isEmpty();
    assertThat(options.leakTracking()).isEqualTo(LeakTracking.OFF);
    assertThat(builder.build()).usingRecursiveComparison().isEqualTo(options);
  }

  @Test
  void runDirectoryIsTheNamedOne() {
    assertThat(builder.build().runDirectory()).isEmpty();
    assertThat(builder.runDirectory(Path.of("/run/mine")).build().runDirectory())
        .contains(Path.of("/run/mine"));
  }

  @Test
  void settingsAreForAllGpusOrForOne() {
    GpuSettings all = GpuSettings.builder().offlineFloorPercent(5).build();
    GpuSettings one = GpuSettings.builder().offlineFloorPercent(9).build();
    GpuPoolOptions options = builder.gpuSettings(all).gpuSettings(new GpuId("a"), one).build();
    assertThat(options.gpuSettings()).isEqualTo(all);
    assertThat(options.settingsOfSome()).containsExactly(Map.entry(new GpuId("a"), one));
    assertThat(options.settingsOfSome()).isUnmodifiable();
  }

  @Test
  void gpusOfOneNameAreRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.gpus(List.of(gpu("a", "x"), gpu("b", "x"), gpu("a", "y"))))
        .withMessageContaining("[a, b, a]");
    List<Gpu> two = List.of(gpu("a", "x"), gpu("b", "x"));
    assertThat(builder.gpus(two).build().gpus()).hasValue(List.copyOf(two));
  }

  @Test
  void listOfNoGpuIsRefused() {
    assertThatIllegalArgumentException().isThrownBy(() -> builder.gpus(List.of()));
  }

  @Test
  void gpusAreCopied() {
    List<Gpu> gpus = new ArrayList<>(List.of(gpu("a", "x")));
    GpuPoolOptions options = builder.gpus(gpus).build();
    gpus.clear();
    assertThat(options.gpus().orElseThrow()).hasSize(1).isUnmodifiable();
  }

  @Test
  void absentValuesAreRefused() {
    assertThatNullPointerException().isThrownBy(() -> builder.gpus(null)).withMessage("gpus");
    assertThatNullPointerException()
        .isThrownBy(() -> builder.gpuSettings(null))
        .withMessage("gpuSettings");
    assertThatNullPointerException()
        .isThrownBy(() -> builder.leakTracking(null))
        .withMessage("leakTracking");
    assertThat(builder.leakTracking(LeakTracking.CREATION_SITE).build().leakTracking())
        .isEqualTo(LeakTracking.CREATION_SITE);
  }
}
