package dev.vgpu.nvml.mig;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.nvml.NvmlProvider;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** Tests on one emulated GPU, which is in MIG mode for the time of each. */
abstract class OneMigGpu {
  @TempDir Path run;

  final NvmlProvider provider = new NvmlProvider();
  private final int index;
  MigDriver driver;
  GpuId gpu;

  OneMigGpu(int index) {
    this.index = index;
  }

  @BeforeEach
  void cut() {
    driver = MigDriver.of(provider);
    gpu = driver.gpus().get(index).gpu();
    assertThat(driver.switchMode(gpu, true)).isEmpty();
  }

  @AfterEach
  void mend() {
    for (MigState.Instance each : driver.gpu(gpu).instances()) {
      driver.destroyParts(gpu, each.id());
      driver.destroy(gpu, each.id());
    }
    assertThat(driver.switchMode(gpu, false)).isEmpty();
    driver.close();
  }

  final MigEnforcement open() {
    return new MigEnforcement(run, MigSeat.nothing(), () -> MigDriver.of(provider));
  }

  final PhysicalGpu physical() {
    return provider.gpus().stream().filter(each -> each.id().equals(gpu)).findFirst().orElseThrow();
  }

  final EnforcedLease grant(
      MigEnforcement enforcement,
      String id,
      VirtualGpuRequest request,
      EnforcedLease.Listener listener)
      throws IOException {
    Path directory = Files.createDirectories(run.resolve("leases").resolve(id));
    return enforcement.prepare(id, directory, physical(), request, listener);
  }

  final List<MigState.Instance> instances() {
    return driver.gpu(gpu).instances();
  }

  /** An instance that no record of ours has, with a compute instance of the same size. */
  final int theirs(int profile, int start, int size) {
    int id = driver.create(gpu, profile, start, size);
    driver.createPart(gpu, id, size);
    return id;
  }
}
