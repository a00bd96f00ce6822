package dev.vgpu.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.mockito.Mockito.CALLS_REAL_METHODS;
import static org.mockito.Mockito.doReturn;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verify;

import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What an implementation says that leaves out everything it may leave out. */
class DefaultsTest {
  private static final GpuId ONE = new GpuId("GPU-1");
  private static final GpuId OTHER = new GpuId("GPU-2");

  private static <T> T plain(Class<T> type) {
    return mock(type, CALLS_REAL_METHODS);
  }

  @Test
  void aLeaseHasNoPowersOfItsOwn() {
    EnforcedLease lease = plain(EnforcedLease.class);
    assertThat(lease.yieldsByItself()).isFalse();
    assertThat(lease.mayOverlap()).isFalse();
    assertThat(lease.mayAttachYet()).isFalse();
    assertThat(lease.busyUntilNs()).as("not known").isNegative();
    assertThat(lease.othersNs()).isZero();
    assertThat(lease.copyTimeNs()).isZero();
    assertThat(lease.launcher()).isEmpty();
    assertThat(lease.mover()).isEmpty();
    assertThat(lease.impaired()).isEmpty();
    assertThat(lease.preemption()).isEmpty();
    assertThat(lease.preemptionReason()).isEmpty();
  }

  @Test
  void allProcessesOfALeaseAreVisibleAndHoldMemory() {
    EnforcedLease lease = plain(EnforcedLease.class);
    doReturn(List.of(7L, 9L)).when(lease).processes();
    assertThat(lease.visibleProcesses()).containsExactly(7L, 9L);
    assertThat(lease.memoryHolders()).containsExactly(7L, 9L);
    assertThat(lease.hasProcessesBesides(7)).isTrue();
    doReturn(List.of(7L)).when(lease).processes();
    assertThat(lease.hasProcessesBesides(7)).isFalse();
    assertThat(lease.hasProcessesBesides(9)).isTrue();
    doReturn(List.of()).when(lease).processes();
    assertThat(lease.hasProcessesBesides(7)).isFalse();
  }

  @Test
  void onlyTheVisibleProcessesHoldMemory() {
    EnforcedLease lease = plain(EnforcedLease.class);
    doReturn(List.of(7L, 9L)).when(lease).processes();
    doReturn(List.of(9L)).when(lease).visibleProcesses();
    assertThat(lease.memoryHolders()).containsExactly(9L);
  }

  @Test
  void aBackendSetsNothingAside() {
    EnforcementBackend backend = plain(EnforcementBackend.class);
    PhysicalGpu gpu = mock(PhysicalGpu.class);
    assertThat(backend.cost()).isEqualTo(100);
    assertThat(backend.preparesWhenGranted()).isFalse();
    assertThat(backend.hasLeftovers(Path.of("/run/vgpu"))).isFalse();
    assertThat(backend.partsSetAside(Path.of("/run/vgpu"))).isEmpty();
    assertThat(backend.needs()).isEmpty();
    assertThat(backend.obstacle(gpu)).isEmpty();
  }

  @Test
  void aBackendWithoutAThreadAnswersAtOnce() {
    Runnable answers = mock(Runnable.class);
    plain(Enforcement.class).whenServing(answers);
    verify(answers).run();
  }

  @Test
  void aProviderOfSeveralGpusMustNameThemAlike() {
    GpuProvider provider = plain(GpuProvider.class);
    doReturn(Map.of("VISIBLE", "1")).when(provider).environment(ONE);
    doReturn(Map.of("VISIBLE", "1")).when(provider).environment(OTHER);
    assertThat(provider.environment(List.of(ONE, OTHER))).isEqualTo(Map.of("VISIBLE", "1"));
    doReturn(Map.of("VISIBLE", "2")).when(provider).environment(OTHER);
    assertThat(provider.environment(List.of(ONE))).isEqualTo(Map.of("VISIBLE", "1"));
    assertThatExceptionOfType(VgpuException.class)
        .isThrownBy(() -> provider.environment(List.of(ONE, OTHER)))
        .withMessageContaining("GPU-2");
  }

  @Test
  void aVirtualGpuIsOfOneGpuAndMovesWithinAMinute() {
    VirtualGpu gpu = plain(VirtualGpu.class);
    PhysicalGpu physical = mock(PhysicalGpu.class);
    doReturn(physical).when(gpu).gpu();
    assertThat(gpu.gpus()).containsExactly(physical);
    gpu.suspend();
    verify(gpu).suspend(Duration.ofMinutes(1));
    gpu.resume();
    verify(gpu).resume(Duration.ofMinutes(1));
  }

  @Test
  void theMemoryOfASuspendedLeaseIsInTheHost() {
    GpuLease lease = plain(GpuLease.class);
    GpuUsage usage = mock(GpuUsage.class);
    doReturn(ONE).when(lease).gpu();
    doReturn(usage).when(lease).usage();
    doReturn(MemorySize.ofMebibytes(3)).when(usage).memoryUsed();
    assertThat(lease.gpus()).containsExactly(ONE);
    assertThat(lease.isSuspended()).isFalse();
    assertThat(lease.memorySuspended()).isEqualTo(MemorySize.ZERO);
    doReturn(true).when(lease).isSuspended();
    assertThat(lease.memorySuspended()).isEqualTo(MemorySize.ofMebibytes(3));
  }
}
