package dev.vgpu.bench.turns;

import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** Large numbers: many waiting threads, and many virtual GPUs open at once. */
final class Crowd {
  private static final int STACK_BYTES = 64 * 1024;

  private Crowd() {}

  /** Microseconds per thread for many threads to queue up behind one and be served. */
  static double waitingThreadsUs(Gate gate, int count) throws InterruptedException {
    CountDownLatch served = new CountDownLatch(count);
    List<Thread> threads = new ArrayList<>(count);
    long startNs = NanoClock.nanoTime();
    gate.run(
        0,
        () -> {
          for (int i = 0; i < count; i++) {
            Thread thread = new Thread(null, () -> waitAndCount(gate, served), "w", STACK_BYTES);
            thread.start();
            threads.add(thread);
          }
          threads.forEach(Crowd::awaitParked);
        });
    served.await();
    long passedNs = NanoClock.nanoTime() - startNs;
    for (Thread thread : threads) {
      thread.join();
    }
    return passedNs / 1e3 / count;
  }

  private static void awaitParked(Thread thread) {
    while (thread.getState() != Thread.State.WAITING) {
      Thread.onSpinWait();
    }
  }

  private static void waitAndCount(Gate gate, CountDownLatch served) {
    try {
      gate.run(1, served::countDown);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Microseconds per virtual GPU to open many of them together, use each once, and close them. */
  static double virtualGpusUs(GpuPool pool, int count) throws InterruptedException {
    VirtualGpuRequest request =
        VirtualGpuRequest.builder()
            .memory(MemorySize.ofBytes(1))
            .preemptionClass(PreemptionClass.OFFLINE)
            .build();
    List<VirtualGpu> open = new ArrayList<>(count);
    long startNs = NanoClock.nanoTime();
    for (int i = 0; i < count; i++) {
      VirtualGpu gpu = pool.acquire(request);
      gpu.run(() -> {});
      open.add(gpu);
    }
    open.forEach(VirtualGpu::close);
    return (NanoClock.nanoTime() - startNs) / 1e3 / count;
  }

  /** Used heap after a collection, in kibibytes. */
  static long heapKib() {
    System.gc();
    Runtime runtime = Runtime.getRuntime();
    return (runtime.totalMemory() - runtime.freeMemory()) / 1024;
  }
}
