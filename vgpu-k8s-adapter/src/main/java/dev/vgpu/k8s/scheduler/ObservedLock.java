package dev.vgpu.k8s.scheduler;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaderElectionRecord;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.Lock;
import java.time.ZonedDateTime;
import java.util.function.DoubleSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A leader's lock whose age is measured here. A record contains the time of the leader's clock. If
 * that clock is behind, the lease of a living leader looks expired, and two processes lead; if it
 * is ahead, the lease of a dead leader does not expire. Therefore a record counts as renewed when
 * it was first seen. Safe for use by several threads.
 */
final class ObservedLock implements Lock {
  private static final double NANOS = 1e9;

  private final Lock lock;
  private final DoubleSupplier clockS;
  private final Supplier<ZonedDateTime> wall;
  private @Nullable LeaderElectionRecord seen;
  private double seenS;

  /**
   * Wraps a lock.
   *
   * @param lock the lock
   * @param clockS seconds of a monotonic clock, which measures the age
   * @param wall the clock with which the elector compares the record's time
   */
  ObservedLock(Lock lock, DoubleSupplier clockS, Supplier<ZonedDateTime> wall) {
    this.lock = lock;
    this.clockS = clockS;
    this.wall = wall;
  }

  @Override
  @SuppressWarnings("NullAway") // The elector expects null if there is no record.
  public synchronized LeaderElectionRecord get(KubernetesClient client) {
    LeaderElectionRecord record = lock.get(client);
    if (record == null) {
      return null;
    }
    double nowS = clockS.getAsDouble();
    if (!record.equals(seen)) {
      seen = record;
      seenS = nowS;
    }
    return new LeaderElectionRecord(
        record.getHolderIdentity(),
        record.getLeaseDuration(),
        record.getAcquireTime(),
        wall.get().minusNanos((long) ((nowS - seenS) * NANOS)),
        record.getLeaderTransitions());
  }

  @Override
  public void create(KubernetesClient client, LeaderElectionRecord record) {
    lock.create(client, record);
  }

  @Override
  public void update(KubernetesClient client, LeaderElectionRecord record) {
    lock.update(client, record);
  }

  @Override
  public String identity() {
    return lock.identity();
  }

  @Override
  public String describe() {
    return lock.describe();
  }
}
