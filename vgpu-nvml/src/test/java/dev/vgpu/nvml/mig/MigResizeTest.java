package dev.vgpu.nvml.mig;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.spy;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import dev.vgpu.VgpuException;
import dev.vgpu.nvml.NvmlProvider;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A lease in a MIG instance whose quota changes. */
class MigResizeTest {
  private static final VirtualGpuRequest HAS = MigSeat.request(300);
  private static final VirtualGpuRequest ASKED = MigSeat.request(200);

  @TempDir private Path run;
  private final NvmlProvider provider = new NvmlProvider();
  private final MigDriver driver = MigDriver.of(provider);
  private final GpuId gpu = driver.gpus().get(2).gpu();
  private final EnforcedLease beneath = mock();
  private final Semaphore asked = new Semaphore(0);
  private volatile CountDownLatch hangs;
  private MigEnforcement enforcement;
  private EnforcedLease lease;

  @BeforeEach
  void grant() throws IOException {
    assertThat(driver.switchMode(gpu, true)).isEmpty();
    PhysicalGpu physical =
        provider.gpus().stream().filter(each -> each.id().equals(gpu)).findFirst().orElseThrow();
    Enforcement hook = mock();
    when(hook.prepare(any(), any(), any(), any(), any())).thenReturn(beneath);
    MigDriver slow = spy(MigDriver.of(provider));
    doAnswer(
            call -> {
              CountDownLatch until = hangs;
              if (until != null) {
                asked.release();
                until.await();
              }
              return call.callRealMethod();
            })
        .when(slow)
        .gpus();
    enforcement = new MigEnforcement(run, hook, () -> slow);
    Path directory = Files.createDirectories(run.resolve("leases/a"));
    lease = enforcement.prepare("a", directory, physical, HAS, mock());
  }

  @AfterEach
  void end() {
    lease.close();
    enforcement.close();
    assertThat(driver.switchMode(gpu, false)).isEmpty();
    driver.close();
  }

  private long bytesOnDisk() throws IOException {
    return MigRecord.all(MigEnforcement.directory(run)).get("a").terms().bytes();
  }

  @Test
  void whatTheBackendBeneathRefusesIsNotOnDisk() throws IOException {
    assertThat(lease.tryResize(ASKED, 1000)).isFalse();
    assertThat(bytesOnDisk()).isEqualTo(HAS.memory().bytes());
    when(beneath.tryResize(any(), anyInt())).thenReturn(true);
    assertThat(lease.tryResize(ASKED, 1000)).isTrue();
    assertThat(bytesOnDisk()).isEqualTo(ASKED.memory().bytes());
  }

  @Test
  void whatCannotBeWrittenIsNotResized() throws IOException {
    Path obstacle = Files.createDirectories(run.resolve("mig/.a.new/full"));
    assertThatThrownBy(() -> lease.tryResize(ASKED, 1000)).isInstanceOf(VgpuException.class);
    verify(beneath, never()).tryResize(any(), anyInt());
    Files.delete(obstacle);
    Files.delete(obstacle.getParent());
    assertThat(bytesOnDisk()).isEqualTo(HAS.memory().bytes());
  }

  @Test
  @Timeout(60)
  void aDriverThatHangsHoldsNoResizeUp() throws Exception {
    CountDownLatch goes = new CountDownLatch(1);
    hangs = goes;
    asked.acquire(); // by the next look
    assertThatThrownBy(() -> lease.tryResize(ASKED, 1000))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("the driver hangs; try again");
    hangs = null;
    goes.countDown();
    when(beneath.tryResize(any(), anyInt())).thenReturn(true);
    assertThat(lease.tryResize(ASKED, 1000)).isTrue();
  }
}
