package dev.vgpu.nvml.mig;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;

import dev.vgpu.GpuDriverException;
import dev.vgpu.VgpuException;
import dev.vgpu.nvml.EmulatedNvml;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Each call that only root may make, refused as for any other user. */
@Timeout(60)
class MigPermissionTest extends OneMigGpu {
  private static final int TWO = 14;
  private static final int NO_PERMISSION = 4;

  private EmulatedNvml nvml;

  MigPermissionTest() {
    super(2);
  }

  @BeforeEach
  void emulate() throws IOException {
    nvml = new EmulatedNvml();
  }

  @AfterEach
  void endEmulation() throws IOException {
    nvml.close();
  }

  private EnforcedLease grant(MigEnforcement enforcement) throws IOException {
    return grant(enforcement, "a", request(), mock());
  }

  private static VirtualGpuRequest request() {
    return VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(300)).build();
  }

  private static void assertDenied(org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            GpuDriverException.class, e -> assertThat(e.code()).hasValue(NO_PERMISSION))
        .hasMessageContaining("Insufficient Permissions (only root may, with CAP_SYS_ADMIN)");
  }

  @Test
  void eachCallByItselfSaysThatThisProcessMayNot() throws IOException {
    int instance = driver.create(gpu, TWO, 0, 2);
    nvml.set("unprivileged=1");
    assertDenied(() -> driver.createPart(gpu, instance, 2));
    nvml.set();
    assertThat(driver.createPart(gpu, instance, 2)).isNotNegative();
    nvml.set("unprivileged=1");
    assertDenied(() -> driver.switchMode(gpu, false));
    assertDenied(() -> driver.create(gpu, TWO, 2, 2));
    assertDenied(() -> driver.destroyParts(gpu, instance));
    nvml.set("unprivileged=nvmlGpuInstanceDestroy");
    driver.destroyParts(gpu, instance);
    assertDenied(() -> driver.destroy(gpu, instance));
    assertThat(driver.gpu(gpu).on()).isTrue();
    assertThat(instances()).extracting(MigState.Instance::id).containsExactly(instance);
  }

  /** As a real driver answers any user but root. */
  @Test
  void profilesThatOnlyRootMayReadAreNotAbsent() throws IOException {
    nvml.set("fail.nvmlDeviceGetGpuInstancePossiblePlacements_v2=4");
    try (MigDriver other = MigDriver.of(provider)) {
      assertDenied(other::gpus);
    }
    nvml.set();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "nvmlDeviceCreateGpuInstanceWithPlacement",
        "nvmlGpuInstanceCreateComputeInstance"
      })
  void whatMayNotBeMadeIsNotGrantedAndNothingIsLeft(String function) throws IOException {
    try (MigEnforcement enforcement = open()) {
      nvml.set("unprivileged=" + function);
      assertDenied(() -> grant(enforcement));
      assertThat(instances()).isEmpty();
      assertThat(MigRecord.all(MigEnforcement.directory(run))).isEmpty();
    }
  }

  /** The record stays: a process with permission, or the next seat, completes the work. */
  @ParameterizedTest
  @ValueSource(strings = {"nvmlComputeInstanceDestroy", "nvmlGpuInstanceDestroy"})
  void whatMayNotBeDestroyedStaysOursUntilItMay(String function) throws IOException {
    try (MigEnforcement enforcement = open()) {
      EnforcedLease lease = grant(enforcement);
      nvml.set("unprivileged=" + function);
      lease.close();
      Files.delete(run.resolve("leases/a"));
      enforcement.look();
      assertThat(instances()).hasSize(1);
      assertThat(MigRecord.all(MigEnforcement.directory(run))).containsOnlyKeys("a");
    }
    nvml.set();
    try (MigEnforcement next = open()) {
      next.look();
      assertThat(instances()).isEmpty();
      assertThat(MigRecord.all(MigEnforcement.directory(run))).isEmpty();
    }
    assertThat(Optional.ofNullable(MigHolders.ofInstances(run).get(gpu))).isEmpty();
  }

  /** What could not be undone keeps its record; a second try must not overwrite it. */
  @Test
  void whatIsNeitherCompletedNorDestroyedIsNotMadeASecondTime() throws IOException {
    try (MigEnforcement enforcement = open()) {
      nvml.set("unprivileged=nvmlGpuInstanceCreateComputeInstance nvmlGpuInstanceDestroy");
      assertThatThrownBy(() -> grant(enforcement)).isInstanceOf(VgpuException.class);
      assertThat(instances()).hasSize(1);
      assertThat(MigRecord.all(MigEnforcement.directory(run))).containsOnlyKeys("a");
      nvml.set();
      Files.delete(run.resolve("leases/a"));
      enforcement.look();
      enforcement.look();
      assertThat(instances()).isEmpty();
    }
  }

  @Test
  void oneWhoseNumberIsNotToldIsDestroyedAtOnce() throws IOException {
    nvml.set("fail.nvmlGpuInstanceGetInfo=999");
    assertThatThrownBy(() -> driver.create(gpu, TWO, 0, 2)).isInstanceOf(GpuDriverException.class);
    nvml.set();
    assertThat(instances()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"x=1", "fail.nvmlDeviceGetHandleByUUID=15"})
  void aGpuThatIsLostTakesMigFromNoOther(String also) throws IOException {
    nvml.set("lost.0=1", also);
    try (MigEnforcement enforcement = open()) {
      assertThat(driver.gpus()).extracting(MigState::gpu).hasSize(2).contains(gpu);
      assertThat(nvml.provider().status().notes())
          .singleElement()
          .asString()
          .contains("a GPU is left out: index=0", "GPU is lost");
      GpuId lost = new GpuId("GPU-00000000-0000-0000-0000-000000000000");
      MigRecord.intended("dead", lost, TWO, 0, List.of(), new MigRecord.Terms(2, 1, false))
          .write(MigEnforcement.directory(run));
      enforcement.look();
      EnforcedLease lease = grant(enforcement);
      assertThat(instances()).hasSize(1);
      lease.close();
      assertThat(instances()).isEmpty();
      assertThat(enforcement.lack(physical(), request())).isEmpty();
    }
  }
}
