package dev.vgpu.cli.embed;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuTurn;
import dev.vgpu.VirtualGpu;
import dev.vgpu.cli.time.NanoClock;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/** Misuses a pool in several ways, one by one; prints a line for each that ends as it should. */
final class RoughUse {
  private static final int CALLERS = 4;
  private static final int TIMES = 20;
  private static final NanoClock CLOCK = NanoClock.system();

  private RoughUse() {}

  private static VirtualGpuRequest request(String name) {
    return VirtualGpuRequest.builder().name(name).memory(MemorySize.ofMebibytes(128)).build();
  }

  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < TIMES; i++) {
      closeDuringCalls();
    }
    System.out.println("closed during calls");
    closeInterrupted();
    closeInListener();
    Runtime.getRuntime().addShutdownHook(new Thread(RoughUse::useAtTheEnd, "use-at-the-end"));
    GpuPool left = GpuPool.open();
    VirtualGpu gpu = left.acquire(request("left"));
    GpuTurn turn = gpu.enter();
    System.out.println("left open " + !turn.isYieldRequested());
  }

  /** Each caller goes on until it learns that the pool is closed. */
  private static void closeDuringCalls() throws Exception {
    GpuPool pool = GpuPool.open();
    VirtualGpu gpu = pool.acquire(request("busy"));
    AtomicInteger told = new AtomicInteger();
    CountDownLatch called = new CountDownLatch(CALLERS);
    List<Thread> callers = new ArrayList<>();
    for (int i = 0; i < CALLERS; i++) {
      Thread caller = new Thread(() -> callUntilClosed(gpu, called, told), "caller-" + i);
      callers.add(caller);
      caller.start();
    }
    called.await();
    pool.close();
    for (Thread caller : callers) {
      caller.join();
    }
    if (told.get() != CALLERS) {
      throw new AssertionError("told=" + told);
    }
  }

  private static void callUntilClosed(VirtualGpu gpu, CountDownLatch called, AtomicInteger told) {
    try {
      while (true) {
        int ignored = gpu.call(() -> 1);
        called.countDown();
      }
    } catch (IllegalStateException e) {
      told.incrementAndGet();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  private static void closeInterrupted() throws Exception {
    GpuPool pool = GpuPool.open();
    try (VirtualGpu gpu = pool.acquire(request("interrupted"))) {
      int ignored = gpu.submit(() -> 1).get();
    }
    Thread.currentThread().interrupt();
    pool.close();
    System.out.println("closed interrupted " + Thread.interrupted());
  }

  /** One listener throws all kinds of exceptions; another closes the pool. */
  private static void closeInListener() throws Exception {
    GpuPool pool = GpuPool.open();
    CountDownLatch closed = new CountDownLatch(1);
    GpuPool.Listening throwing =
        pool.listen(
            event -> {
              throw new StackOverflowError("a listener's");
            });
    GpuPool.Listening closing =
        pool.listen(
            event -> {
              pool.close();
              closed.countDown();
            });
    long beginNs = CLOCK.nowNs();
    pool.acquire(request("heard"));
    closed.await();
    boolean quick = CLOCK.nowNs() - beginNs < 60_000_000_000L;
    closing.close();
    throwing.close();
    System.out.println("closed in a listener " + quick);
  }

  private static void useAtTheEnd() {
    try (GpuPool pool = GpuPool.open();
        VirtualGpu gpu = pool.acquire(request("last"))) {
      System.out.println("used at the end " + gpu.call(() -> true));
    } catch (Exception e) {
      System.out.println("at the end " + e);
    }
  }
}
