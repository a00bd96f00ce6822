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
 * Binds a pool's readings to meter registries: its virtual GPUs, whichever process owns them, its
 * GPUs, and the readings of their drivers. Safe for use by several threads.
 *
 * <p>Meters of virtual GPUs have the tags {@code name}, {@code gpu}, {@code class} and {@code
 * policy}. Virtual GPUs with the same values of all four share their meters, which hold the sums.
 * Meters come and go with the virtual GPUs. A virtual GPU on several GPUs has meters for each; its
 * memory is counted on the first. Meters of devices have the names and tags of OpenTelemetry's
 * hardware conventions ({@code hw.id} is the UUID). A quantity that cannot be measured has no
 * meter, or the value NaN.
 *
 * <p>Values are at most half a second old when they are read. Simultaneous reads share one snapshot
 * of the pool.
 */
public final class VgpuMetrics implements MeterBinder, AutoCloseable {
  /**
   * From a turn's hand-over to the longest wait that a client accepts. Few buckets, because each
   * record searches for its bucket.
   */
  private static final Duration[] BUCKETS =
      IntStream.of(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
          .mapToObj(Duration::ofMillis)
          .toArray(Duration[]::new);

  private final GpuPool pool;
  private final List<PoolMeters> bound = new ArrayList<>(); // guarded by this
  private boolean closed; // guarded by this

  /**
   * Creates a binder; nothing is bound yet.
   *
   * @param pool the pool to measure; not closed by this
   */
  public VgpuMetrics(GpuPool pool) {
    this.pool = requireNonNull(pool, "pool");
  }

  /**
   * Registers the meters, and keeps them up to date with the pool until {@link #close()}.
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
   * {@return the same virtual GPU with a timer {@code vgpu.wait} for the time that its calls wait
   * for their turn and their memory} The timer covers calls by {@link VirtualGpu#call} and {@link
   * VirtualGpu#run} and turns by {@link VirtualGpu#enter()}. Virtual GPUs with the same name on the
   * same GPU share the timer. It stays registered when the virtual GPU is closed.
   *
   * @param gpu the virtual GPU to time; closed with the result
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
