package dev.vgpu.bench.turns;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuTurn;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.concurrent.Callable;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** One uncontended call: what a turn adds to it, compared with a fair semaphore and lock. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class UncontendedBenchmark {
  private final Callable<Integer> work = () -> 1;
  private final Semaphore semaphore = new Semaphore(1, true);
  private final ReentrantLock lock = new ReentrantLock(true);
  private final GpuPool pool =
      GpuPool.open(GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build());
  private final VirtualGpu gpu =
      pool.acquire(VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(1)).build());

  /** Closes the pool. */
  @TearDown
  public void close() {
    pool.close();
  }

  /**
   * {@return what the call returns}
   *
   * @throws Exception never
   */
  @Benchmark
  public Integer call() throws Exception {
    return gpu.<Integer>call(work);
  }

  /**
   * {@return what the call returns}
   *
   * @throws Exception never
   */
  @Benchmark
  public Integer enter() throws Exception {
    try (GpuTurn turn = gpu.enter()) {
      return turn.isYieldRequested() ? 0 : work.call();
    }
  }

  /**
   * {@return what the call returns}
   *
   * @throws Exception never
   */
  @Benchmark
  public Integer fairSemaphore() throws Exception {
    semaphore.acquire();
    try {
      return work.call();
    } finally {
      semaphore.release();
    }
  }

  /**
   * {@return what the call returns}
   *
   * @throws Exception never
   */
  @Benchmark
  public Integer fairLock() throws Exception {
    lock.lockInterruptibly();
    try {
      return work.call();
    } finally {
      lock.unlock();
    }
  }

  /**
   * {@return what the call returns, without any gate}
   *
   * @throws Exception never
   */
  @Benchmark
  public Integer bare() throws Exception {
    return work.call();
  }
}
