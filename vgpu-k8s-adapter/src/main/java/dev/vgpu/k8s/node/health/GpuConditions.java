package dev.vgpu.k8s.node.health;

import dev.vgpu.GpuHealth;
import dev.vgpu.GpuId;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuReading;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The conditions of a node's GPUs, by what the seat has been told and by what was read last. Safe
 * for use by several threads.
 */
public final class GpuConditions {
  private static final Condition CUT =
      new Condition(
          Condition.Kind.MIG, "its MIG mode was switched on: programs run in instances of it only");

  private final GpuPool pool;
  private volatile List<GpuReading> last = List.of();

  /** By GPU: the last reading in which it answered. */
  private volatile Map<GpuId, GpuReading> answers = Map.of();

  private volatile boolean isRead;

  /**
   * Creates them unread.
   *
   * @param pool the node's GPUs
   */
  public GpuConditions(GpuPool pool) {
    this.pool = pool;
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
    for (GpuReading one : last) {
      Condition read = Condition.of(one.health(), one.healthReason());
      all.merge(one.gpu(), isCut(one) ? read.or(CUT) : read, Condition::or);
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

  /** An instance has a parent, whose mode it may repeat. */
  private static boolean isCut(GpuReading reading) {
    return "on".equals(reading.properties().get("mig_mode"))
        && !reading.properties().containsKey("parent");
  }
}
