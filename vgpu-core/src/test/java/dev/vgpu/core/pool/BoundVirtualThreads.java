package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuTurn;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * A JVM under two virtual GPUs, with virtual threads. {@link VirtualThreadsTest} runs it on a JDK
 * that has them. Prints the result of each attempt.
 */
final class BoundVirtualThreads {
  private BoundVirtualThreads() {}

  /**
   * Runs all attempts.
   *
   * @param args the run directory of the pool
   */
  public static void main(String[] args) throws Exception {
    FakeBackend backend = new FakeBackend();
    try (GpuPool pool =
        new NodeRegistry(Map.of(), () -> List.of(backend))
            .openPool(
                GpuPoolOptions.builder().runDirectory(Path.of(args[0])).gpus(Pools.gpus(1)).build(),
                new Discovery(List.of()),
                NanoClock.SYSTEM)) {
      VirtualGpu a = pool.acquire(Pools.share(NEARLINE, 30));
      VirtualGpu b = pool.acquire(Pools.share(NEARLINE, 30));
      a.attachThisJvm();
      b.attachThisJvm();
      onVirtualThread("enter", () -> entered(a));
      onVirtualThread("call", () -> called(b, backend));
      onVirtualThread("submit", () -> submitted(b, backend).equals(b.id()) ? "bound" : "not bound");
      String inCall = a.call(() -> backend.bound.get());
      System.out.println("platform: " + (inCall.equals(a.id()) ? "bound" : "not bound"));
      System.out.println("left: " + backend.bound.get() + ", running " + a.usage().running());
    }
  }

  private static String entered(VirtualGpu gpu) {
    try (GpuTurn turn = gpu.enter()) {
      return "entered " + turn;
    } catch (IllegalStateException e) {
      return "refused: " + e.getMessage();
    } catch (InterruptedException e) {
      return "interrupted";
    }
  }

  private static String called(VirtualGpu gpu, FakeBackend backend) {
    try {
      return "called " + gpu.call(() -> backend.bound.get());
    } catch (IllegalStateException e) {
      return "refused: " + e.getMessage();
    } catch (Exception e) {
      return "failed: " + e;
    }
  }

  private static String submitted(VirtualGpu gpu, FakeBackend backend) {
    try {
      return gpu.submit(() -> backend.bound.get()).get(10, TimeUnit.SECONDS);
    } catch (Exception e) {
      return "failed: " + e;
    }
  }

  private static void onVirtualThread(String what, Supplier<String> attempt) throws Exception {
    Runnable body = () -> System.out.println(what + ": " + attempt.get());
    // By reflection: the build's JDK has no virtual threads.
    Thread thread =
        (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, body);
    thread.join(20_000);
  }
}
