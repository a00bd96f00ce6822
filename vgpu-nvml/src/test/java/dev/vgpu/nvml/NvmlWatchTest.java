package dev.vgpu.nvml;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import dev.vgpu.GpuDriverException;
import dev.vgpu.GpuPool;
import dev.vgpu.nvml.mig.MigDriver;
import dev.vgpu.request.GpuId;
import dev.vgpu.spi.GpuHealthListener;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the watch reports while a GPU's driver changes. */
@Timeout(120)
class NvmlWatchTest implements GpuHealthListener {
  private static final int XID = 8;
  private static final int CORRECTED = 1;

  private static final String WATCHED = "0 fault an error of the memory was corrected";

  private final BlockingQueue<String> told = new LinkedBlockingQueue<>();
  private EmulatedNvml nvml;
  private NvmlProvider provider;
  private Set<Thread> before;
  private List<GpuId> gpus;
  private GpuPool.Listening watch;

  @Override
  public void changed(GpuId gpu, GpuHealth health, String reason) {
    told.add(gpus.indexOf(gpu) + " " + health + " " + reason);
  }

  @Override
  public void fault(GpuId gpu, String reason) {
    told.add(gpus.indexOf(gpu) + " fault " + reason);
  }

  @Override
  public void appeared(GpuId gpu) {
    told.add(gpus.indexOf(gpu) + " appeared");
  }

  @BeforeEach
  void begin() throws IOException {
    nvml = new EmulatedNvml();
    provider = nvml.provider();
    gpus = awaitGpus().stream().map(PhysicalGpu::id).toList();
    before = Thread.getAllStackTraces().keySet(); // an earlier watch may be late to end
    watch = provider.watch(this);
  }

  /** The previous test's watch closes NVML within half a second of its end, not at once. */
  private List<PhysicalGpu> awaitGpus() {
    for (int tries = 2_000; ; tries--) {
      try {
        return provider.gpus();
      } catch (GpuDriverException e) {
        if (tries == 0) {
          throw e;
        }
        LockSupport.parkNanos(this, 5_000_000);
      }
    }
  }

  @AfterEach
  void end() throws IOException {
    watch.close();
    nvml.close();
  }

  /** The next report but those that {@link #awaitWatching} caused. */
  private String next() throws InterruptedException {
    String line;
    do {
      line = told.poll(60, TimeUnit.SECONDS);
    } while (WATCHED.equals(line));
    return line == null ? "nothing" : line;
  }

  /** An event before the event set exists is lost, so try again until one is reported. */
  private void awaitWatching() throws IOException, InterruptedException {
    String line = null;
    told.removeIf(WATCHED::equals);
    while (line == null) {
      nvml.event(0, CORRECTED, 0);
      line = told.poll(100, TimeUnit.MILLISECONDS);
    }
    assertThat(line).isEqualTo(WATCHED);
  }

  /** While a GPU is missing the watch restarts NVML again and again, and loses events meanwhile. */
  private String awaitDegraded(int gpu) throws IOException, InterruptedException {
    String line = WATCHED;
    for (int tries = 0; (line == null || line.equals(WATCHED)) && tries < 600; tries++) {
      nvml.event(gpu, XID, 95);
      line = told.poll(100, TimeUnit.MILLISECONDS);
    }
    return line;
  }

  /** A wait inside NVML cannot be ended, and a short command would wait for it when it closes. */
  @Test
  void theWatchWaitsWhereItsCloseCanWakeIt() throws Exception {
    awaitWatching();
    Thread thread =
        Thread.getAllStackTraces().keySet().stream()
            .filter(each -> each.getName().equals("vgpu-nvml-watch") && !before.contains(each))
            .findFirst()
            .orElseThrow();
    boolean waits = false;
    for (int tries = 0; tries < 30_000 && !waits; tries++) {
      waits = thread.getState() == Thread.State.TIMED_WAITING;
      LockSupport.parkNanos(this, 1_000_000);
    }
    assertThat(waits).isTrue();
  }

  @Test
  void criticalErrorsAreTold() throws Exception {
    awaitWatching();
    nvml.event(1, XID, 31);
    assertThat(next()).isEqualTo("1 fault a program accessed unmapped memory (XID 31)");
    nvml.event(2, XID, 95);
    assertThat(next()).startsWith("2 DEGRADED an error of the memory was not contained");
    assertThat(provider.readings().get(2).health()).isEqualTo(GpuHealth.DEGRADED);
    assertThat(provider.readings().get(2).healthReason()).contains("XID 95");
    nvml.event(1, XID, 4711);
    assertThat(next()).isEqualTo("1 DEGRADED critical error (XID 4711)");
    assertThat(provider.readings().get(0).health()).isEqualTo(GpuHealth.HEALTHY);
  }

  @Test
  void aGpuIsLostAndComesBackUnderAnotherNumber() throws Exception {
    awaitWatching();
    nvml.set("lost.1=1");
    assertThat(next()).startsWith("1 LOST GPU is lost");
    // the others are watched meanwhile
    assertThat(awaitDegraded(2)).startsWith("2 DEGRADED");
    nvml.set("order=2 1 0");
    assertThat(next()).isEqualTo("1 HEALTHY the driver answers again");
    nvml.set("unplugged.0=1");
    assertThat(next()).startsWith("0 LOST");
    nvml.set();
    assertThat(next()).isEqualTo("0 HEALTHY the driver answers again");
  }

  /** Waits until the watch has looked at all GPUs after this call. */
  private static void awaitLook() throws InterruptedException {
    Semaphore restarts = new Semaphore(0);
    Runnable restart = restarts::release;
    OpenNvml.add(restart);
    boolean isDone = restarts.tryAcquire(2, 60, TimeUnit.SECONDS); // one may have begun before
    OpenNvml.remove(restart);
    assertThat(isDone).isTrue();
  }

  private String nextOf(int gpu) throws InterruptedException {
    String line = next();
    while (!line.startsWith(gpu + " ") && !line.equals("nothing")) {
      line = next();
    }
    return line;
  }

  /** As after XID 79: NVML may fail with an error that does not say that the GPU is lost. */
  @ParameterizedTest
  @CsvSource({
    "lost.1=1,fail.nvmlDeviceGetHandleByUUID=999",
    "x=1,fail.nvmlDeviceGetMemoryInfo.1=999"
  })
  void aLostGpuIsHealthyOnlyOnceItAnswers(String lost, String failure) throws Exception {
    awaitWatching();
    nvml.set("lost.1=1");
    assertThat(next()).startsWith("1 LOST GPU is lost");
    nvml.set(lost, failure);
    awaitLook();
    assertThat(told).noneMatch(line -> line.startsWith("1 "));
    nvml.set();
    assertThat(nextOf(1)).isEqualTo("1 HEALTHY the driver answers again");
  }

  @Test
  void aGpuThatFailsAtEachPollIsLost() throws Exception {
    awaitWatching();
    nvml.set("fail.nvmlDeviceGetMemoryInfo.1=999");
    assertThat(next()).startsWith("1 LOST Unknown Error");
    nvml.set();
    assertThat(nextOf(1)).isEqualTo("1 HEALTHY the driver answers again");
  }

  @Test
  void theWatchGoesOnAfterALackOfMemory() throws Exception {
    watch.close();
    NvmlWatch.Source source = mock();
    when(source.open())
        .thenThrow(new OutOfMemoryError("direct buffer"))
        .thenAnswer(call -> provider.session());
    when(source.gpus()).thenReturn(gpus);
    watch = NvmlWatch.start(source, this);
    nvml.set("lost.1=1");
    assertThat(next()).startsWith("1 LOST");
  }

  @Test
  void aGpuThatIsPluggedInLaterIsTold() throws Exception {
    watch.close();
    nvml.set("unplugged.2=1");
    provider = nvml.provider();
    assertThat(provider.gpus()).hasSize(2);
    watch = provider.watch(this);
    awaitWatching();
    nvml.set();
    assertThat(next()).isEqualTo("2 appeared");
    awaitWatching(); // and the others continue
  }

  @Test
  void aDriverIsReloadedUnderTheWatch() throws Exception {
    awaitWatching();
    provider.readings(); // opens NVML too
    nvml.set("driver=9");
    assertThat(List.of(next(), next(), next()))
        .allMatch(line -> line.contains(" LOST Driver Not Loaded"));
    nvml.set("generation=7");
    assertThat(List.of(next(), next(), next()))
        .containsExactlyInAnyOrder(
            "0 HEALTHY the driver answers again",
            "1 HEALTHY the driver answers again",
            "2 HEALTHY the driver answers again");
    awaitWatching();
  }

  /** NVML has one state per process, so a holder for MIG has to close it as well. */
  @Test
  void aDriverIsReloadedWhileNvmlIsHeldForMig() throws Exception {
    awaitWatching();
    try (MigDriver driver = MigDriver.open()) {
      assertThat(driver.gpus()).hasSize(3);
      nvml.set("driver=9");
      assertThat(List.of(next(), next(), next()))
          .allMatch(line -> line.contains(" LOST Driver Not Loaded"));
      nvml.set("generation=8");
      assertThat(List.of(next(), next(), next()))
          .allMatch(line -> line.endsWith(" HEALTHY the driver answers again"));
      assertThat(driver.gpus()).hasSize(3);
    }
  }
}
