package dev.vgpu.micrometer;

import static java.util.Objects.requireNonNull;

import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Binds what a pool knows to meter registries: its virtual GPUs, whichever process holds them, its
 * GPUs, and what their drivers tell. Safe for use by several threads.
 *
 * <p>Meters of virtual GPUs have the tags {@code name}, {@code gpu}, {@code class} and {@code
 * policy}. Virtual GPUs that agree in all four share their meters: values are summed. Meters come
 * and go with the virtual GPUs. One of several GPUs has meters for each; its memory is counted at
 * the first. Meters of devices have the names and tags of OpenTelemetry's hardware conventions
 * ({@code hw.id} is the UUID). What cannot be measured has no meter, or the value NaN.
 *
 * <p>Values are at most half a second old when they are read. Reads that come together share one
 * look at the pool.
 */
public final class VgpuMetrics implements MeterBinder, AutoCloseable {
  /** From a turn's hand-over to what a client waits for. Few: each record looks for its bucket. */
  private static final Duration[] BUCKETS =
      IntStream.of(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
          .mapToObj(Duration::ofMillis)
          .toArray(Duration[]::new);

  private final GpuPool pool;
  private final List<PoolMeters> bound = new ArrayList<>(); // guarded by this
  private boolean closed; // guarded by this

  /**
   * Makes a binder; nothing is bound yet.
   *
   * @param pool what to measure; not closed by this
   */
  public VgpuMetrics(GpuPool pool) {
    this.pool = requireNonNull(pool, "pool");
  }

  /**
   * Registers the meters, and keeps them in step with the pool until {@link #close()}.
   *
   * @param registry where they are registered
   * @throws IllegalStateException if this or the pool is closed
   */
  @Override
  public synchronized void bindTo(MeterRegistry registry) {
    requireNonNull(registry, "registry");
    if (closed) {
      throw new IllegalStateException("the meters were closed before they were bound");
    }
    bound.add(PoolMeters.bind(pool, registry));
  }

  /**
   * {@return the same virtual GPU with a timer {@code vgpu.wait} of how long its calls wait for
   * their turn and their memory} Calls by {@link VirtualGpu#call} and {@link VirtualGpu#run} and
   * turns by {@link VirtualGpu#enter()} are timed. Several virtual GPUs of one name on one GPU
   * share the timer. It stays registered when the virtual GPU is closed.
   *
   * @param gpu what to time; closed with the result
   * @param registry where the timer is registered
   */
  public static VirtualGpu timed(VirtualGpu gpu, MeterRegistry registry) {
    requireNonNull(gpu, "gpu");
    Timer waits =
        Timer.builder("vgpu.wait")
            .description("Time that calls waited for their turn and their memory")
            .tags(Tenant.of(gpu.request(), gpu.gpu().id()).tags())
            .serviceLevelObjectives(BUCKETS)
            .register(requireNonNull(registry, "registry"));
    return new TimedVirtualGpu(gpu, waits, registry.config().clock());
  }

  /** Removes the meters from all registries. A second call does nothing. */
  @Override
  public synchronized void close() {
    closed = true;
    bound.forEach(PoolMeters::close);
    bound.clear();
  }
}
