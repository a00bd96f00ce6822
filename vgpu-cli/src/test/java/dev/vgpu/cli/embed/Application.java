package dev.vgpu.cli.embed;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuTurn;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuEvent;
import java.time.Instant;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import org.jspecify.annotations.Nullable;

/**
 * Uses vgpu in every way that may leave something behind: threads, objects in the JVM, files.
 * Loaded by {@link Server}; calling it uses and closes it.
 */
public final class Application implements Callable<String> {
  private final ExecutorService threads;
  private final GpuPool pool = GpuPool.open();
  private final Queue<GpuEvent> events = new ConcurrentLinkedQueue<>();
  private @Nullable VirtualGpu leftOpen;

  /** Opens a pool. */
  public Application(ExecutorService threads) {
    this.threads = threads;
  }

  @Override
  public String call() throws Exception {
    try (pool;
        GpuPool second = GpuPool.open();
        GpuPool.Listening listening = pool.listen(events::add)) {
      use(pool, "one");
      use(second, "two");
      leftOpen = pool.acquire(request("left-open")); // closed with its pool
      return "used gpus="
          + pool.gpus().size()
          + " readings="
          + pool.readings().size()
          + " states="
          + pool.states().size()
          + " backends="
          + pool.backends().size()
          + " usage="
          + !pool.usageSince(Instant.EPOCH).isEmpty()
          + " open="
          + !leftOpen.isClosed()
          + " heard by "
          + listening.getClass().isSynthetic();
    }
  }

  private static VirtualGpuRequest request(String name) {
    return VirtualGpuRequest.builder()
        .name(name)
        .memory(MemorySize.ofMebibytes(128))
        .policy(SharePolicy.BURST_SHARE)
        .computePercent(10)
        .build();
  }

  private void use(GpuPool of, String name) throws Exception {
    try (VirtualGpu gpu = of.acquire(request(name))) {
      call(gpu);
      threads.submit(() -> call(gpu)).get();
      PreemptibleCall<Integer> preemptible =
          new PreemptibleCall<>() {
            @Override
            public Integer call() {
              return 1;
            }

            @Override
            public void cancel() {}
          };
      Integer one = gpu.call(preemptible);
      Integer two = gpu.submit(() -> 1 + one).get();
      // A turn that is entered on one thread and closed on another.
      GpuTurn turn = threads.submit(() -> gpu.enter()).get();
      turn.close();
      Process program = gpu.start(new ProcessBuilder("true"));
      if (program.waitFor() != 0 || two != 2 || gpu.usage().processes() < 0) {
        throw new AssertionError("it did not do as it was told");
      }
    }
  }

  private static boolean call(VirtualGpu gpu) throws Exception {
    boolean called = gpu.call(() -> gpu.call(() -> true));
    try (GpuTurn turn = gpu.enter();
        GpuTurn nested = gpu.enter()) {
      return called && !turn.equals(nested);
    }
  }
}
