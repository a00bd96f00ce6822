package dev.vgpu.k8s.node.health;

import dev.vgpu.GpuPool;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;

/**
 * The conditions of a node's GPUs, by what the seat has been told and by what was read last. Safe
 * for use by several threads.
 */
public final class GpuConditions implements AutoCloseable {
  private static final Condition CUT =
      new Condition(
          Condition.Kind.MIG, "its MIG mode was switched on: programs run in instances of it only");
  private static final Condition WHOLE =
      new Condition(Condition.Kind.MIG, "its MIG mode was switched off: it has no instances");

  private final GpuPool pool;
  private volatile List<GpuReading> last = List.of();

  /** By GPU: the last reading in which it answered. */
  private volatile Map<GpuId, GpuReading> answers = Map.of();

  private volatile boolean isRead;
  private final AtomicLong changes = new AtomicLong();
  private final GpuPool.Listening listening;

  /**
   * Creates them unread.
   *
   * @param pool the node's GPUs
   */
  public GpuConditions(GpuPool pool) {
    this.pool = pool;
    this.listening =
        pool.listen(
            event -> {
              if (event instanceof GpuEvent.HealthChanged) {
                changes.incrementAndGet();
              }
            });
  }

  /**
   * {@return a number that grows when the seat is told something, and when the GPUs are read} While
   * it is the same, so are the conditions. To be asked before them.
   */
  public long changes() {
    return changes.get();
  }

  /** Reads the GPUs anew. Blocks until the driver answers; others do not wait for that. */
  public void read() {
    List<GpuReading> readings = pool.readings();
    Map<GpuId, GpuReading> all = new HashMap<>(answers);
    readings.stream()
        .filter(one -> one.health() != GpuHealth.LOST)
        .forEach(one -> all.put(one.gpu(), one));
    answers = Map.copyOf(all);
    last = List.copyOf(readings);
    isRead = true;
    changes.incrementAndGet();
  }

  private void readOnce() {
    if (!isRead) {
      read();
    }
  }

  /** {@return the conditions now; a GPU that is not there is good} */
  public Map<GpuId, Condition> now() {
    readOnce();
    Map<GpuId, Condition> all = new HashMap<>();
    pool.states()
        .forEach(one -> all.put(one.gpu(), Condition.of(one.health(), one.healthReason())));
    Set<GpuId> divided =
        pool.gpus().stream()
            .filter(gpu -> gpu.unusableAsWhole().isPresent())
            .map(PhysicalGpu::id)
            .collect(Collectors.toSet());
    for (GpuReading one : last) {
      Condition read = Condition.of(one.health(), one.healthReason());
      all.merge(one.gpu(), read.or(mode(one, divided.contains(one.gpu()))), Condition::or);
    }
    return all;
  }

  /** {@return what was read last, of GPUs that do not answer too} */
  public List<GpuReading> last() {
    readOnce();
    return last;
  }

  /** {@return the last reading in which a GPU answered; its topology does not change} */
  public Optional<GpuReading> answer(GpuId gpu) {
    readOnce();
    return Optional.ofNullable(answers.get(gpu));
  }

  /** Whether it has the mode that it was found with. An instance may repeat its parent's mode. */
  private static Condition mode(GpuReading reading, boolean wasOn) {
    String mode = reading.properties().getOrDefault("mig_mode", "");
    if (reading.properties().containsKey("parent")) {
      return Condition.GOOD;
    }
    return wasOn && mode.equals("off") ? WHOLE : !wasOn && mode.equals("on") ? CUT : Condition.GOOD;
  }

  /** Stops listening to the pool. */
  @Override
  public void close() {
    listening.close();
  }
}
