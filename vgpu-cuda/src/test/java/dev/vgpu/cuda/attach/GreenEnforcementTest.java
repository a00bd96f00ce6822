package dev.vgpu.cuda.attach;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import dev.vgpu.VgpuException;
import dev.vgpu.cuda.GreenBackend;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The seat's side of green contexts; RunIT of vgpu-cli tests the JVM's side. */
@Timeout(30)
class GreenEnforcementTest {
  @TempDir private Path run;
  private final PhysicalGpu gpu = mock(PhysicalGpu.class);
  private final EnforcedLease hooked = mock(EnforcedLease.class);
  private EnforcedLease lease;

  private static VirtualGpuRequest.Builder share(int percent) {
    return VirtualGpuRequest.builder()
        .memory(MemorySize.ofMebibytes(100))
        .policy(SharePolicy.FIXED_SHARE)
        .computePercent(percent);
  }

  @BeforeEach
  void prepare() throws IOException {
    when(gpu.id()).thenReturn(new GpuId("GPU-1"));
    when(hooked.environment()).thenReturn(Map.of("LD_PRELOAD", "/hook.so"));
    when(hooked.tryResize(any(), anyInt())).thenReturn(true);
    Enforcement beneath = mock(Enforcement.class);
    when(beneath.prepare(any(), any(), any(), any(), any())).thenReturn(hooked);
    lease =
        new GreenEnforcement(run, beneath)
            .prepare("a-1", run, gpu, share(30).build(), mock(EnforcedLease.Listener.class));
  }

  @Test
  void theJvmIsToldItsShareAndWhatToLock() {
    assertThat(lease.environment())
        .containsEntry("LD_PRELOAD", "/hook.so")
        .containsEntry(GreenEnforcement.PERCENT, "30");
    assertThat(Path.of(lease.environment().get(GreenEnforcement.LOCK))).isEmptyFile();
  }

  @Test
  void programsAreRefusedSinceTheyWouldHaveTheWholeGpu() {
    assertThatThrownBy(() -> lease.check(Path.of("/bin/true")))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("calls in one JVM");
  }

  @Test
  void theQuotaChangesAndThePartStays() {
    assertThat(lease.tryResize(share(30).memory(MemorySize.ofMebibytes(50)).build(), 300)).isTrue();
    assertThat(lease.tryResize(share(40).build(), 400)).isFalse();
  }

  @Test
  void onlyAFixedShareIsAPart() {
    GreenBackend backend = new GreenBackend();
    assertThat(backend.unable(gpu, share(30).build())).isEmpty();
    assertThat(backend.unable(gpu, share(30).policy(SharePolicy.BURST_SHARE).build())).isPresent();
    assertThat(backend.needs()).isPresent();
  }
}
