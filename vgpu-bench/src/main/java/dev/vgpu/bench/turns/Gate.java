package dev.vgpu.bench.turns;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuSettings;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.ReentrantLock;

/** Admits one of several parties at a time: turns, or one of the references. */
interface Gate extends AutoCloseable {
  /** Runs work inside the gate, on behalf of a party. */
  void run(int party, Runnable work) throws InterruptedException;

  @Override
  default void close() {}

  /** Virtual GPUs of one device, one for each party; an idle turn is passed on at once. */
  static Gate turns(int parties) {
    GpuPool pool =
        GpuPool.open(
            GpuPoolOptions.builder()
                .scope(GpuPoolOptions.Scope.THIS_JVM)
                .gpuSettings(GpuSettings.builder().idleLinger(Duration.ZERO).build())
                .build());
    VirtualGpu[] gpus = new VirtualGpu[parties];
    for (int i = 0; i < parties; i++) {
      gpus[i] = pool.acquire(VirtualGpuRequest.builder().memory(MemorySize.ofBytes(1)).build());
    }
    return new Gate() {
      @Override
      public void run(int party, Runnable work) throws InterruptedException {
        gpus[party].run(work);
      }

      @Override
      public void close() {
        pool.close();
      }
    };
  }

  static Gate fairSemaphore() {
    Semaphore semaphore = new Semaphore(1, true);
    return (party, work) -> {
      semaphore.acquire();
      try {
        work.run();
      } finally {
        semaphore.release();
      }
    };
  }

  static Gate fairLock() {
    ReentrantLock lock = new ReentrantLock(true);
    return (party, work) -> {
      lock.lockInterruptibly();
      try {
        work.run();
      } finally {
        lock.unlock();
      }
    };
  }
}
