package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.cuda.files.Preloads;
import dev.vgpu.cuda.hook.ContextMemory;
import dev.vgpu.cuda.hook.HookEnforcement;
import dev.vgpu.cuda.layout.ShmLayout.Header;
import dev.vgpu.cuda.pages.FutexWake;
import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.cuda.process.ProcFiles;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Many programs of one lease that send without a pause. */
@Timeout(60)
class HookFloodTest {
  private static final long CONTAINER = 1;
  private static final int PROGRAMS = 100;
  private static final long MS = 1_000_000;

  @TempDir private Path run;
  private final SteppingClock clock = new SteppingClock();

  /**
   * Advances by a millisecond with each question, and so with each thing that the seat does. It
   * measures for how long another lease has had no heartbeat.
   */
  private static final class SteppingClock implements NanoClock {
    volatile FakeHook other;
    volatile boolean measures;
    volatile CountDownLatch reached = new CountDownLatch(0);
    volatile CountDownLatch goesOn = new CountDownLatch(0);
    volatile long longestNs;
    private long nowNs = 1_000 * MS;

    @Override
    public long nanoTime() {
      if (!Thread.currentThread().getName().equals("vgpu-hook-seat")) {
        return nowNs();
      }
      reached.countDown();
      try {
        goesOn.await();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
      if (measures) {
        longestNs = Math.max(longestNs, nowNs() - other.grant.longAt(Header.HEARTBEAT_NS));
      }
      return advance();
    }

    private synchronized long nowNs() {
      return nowNs;
    }

    private synchronized long advance() {
      nowNs += MS;
      return nowNs;
    }
  }

  private EnforcedLease prepare(Enforcement seat, String id) throws IOException {
    Path directory = Files.createDirectories(run.resolve("leases").resolve(id));
    VirtualGpuRequest request =
        VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(64)).build();
    return seat.prepare(id, directory, TestGpu.named("GPU-1"), request, new SilentListener());
  }

  @Test
  void messagesOfOneLeaseDoNotDelayTheHeartbeatOfAnother() throws Exception {
    Files.createFile(run.resolve("hook.so"));
    Map<String, String> environment =
        Map.of("VGPU_HOOK", run.resolve("hook.so").toString(), "VGPU_CONTEXT_MEMORY", "65536");
    List<FakeHook> flood = new ArrayList<>();
    try (Enforcement seat =
        new HookEnforcement(
            run,
            Preloads.of(environment),
            new ContextMemory(environment),
            true,
            false,
            clock,
            new ProcFiles(Path.of("/proc")),
            new FutexWake(),
            environment)) {
      for (String id : List.of("other", "floods")) {
        EnforcedLease ignored = prepare(seat, id);
      }
      clock.other = FakeHook.attach(run, "other", ProcessHandle.current().pid());
      clock.other.want();
      for (int i = 0; i < PROGRAMS; i++) {
        flood.add(FakeHook.attach(run, "floods", 1_000_000_000 + i, CONTAINER));
      }
      clock.goesOn = new CountDownLatch(1);
      clock.reached = new CountDownLatch(1);
      clock.reached.await();
      for (FakeHook hook : flood) {
        hook.want();
      }
      clock.measures = true;
      clock.goesOn.countDown();
      FakeHook.attach(run, "other", ProcessHandle.current().pid()).close(); // after all these
      clock.measures = false;
      System.out.println(
          PROGRAMS + " programs send at once: without a heartbeat for ms=" + clock.longestNs / MS);
      assertThat(clock.longestNs).isLessThan(PROGRAMS / 2 * MS);
    } finally {
      clock.goesOn.countDown();
      for (FakeHook hook : flood) {
        hook.close();
      }
      clock.other.close();
    }
  }
}
