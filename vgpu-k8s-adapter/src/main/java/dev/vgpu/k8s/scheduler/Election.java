package dev.vgpu.k8s.scheduler;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaderElectionRecord;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.Lock;
import java.time.Duration;
import java.time.ZonedDateTime;
import java.util.function.DoubleSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Elects one of several processes by a lease in the API.
 *
 * <p>Ages are measured with this process's monotonic clock. A record contains the time of the
 * leader's clock, which may be wrong; therefore a record counts as renewed when it was first seen.
 * A leader whose last renewal is {@value #RENEW_S} seconds old does not lead any more, even while a
 * request to renew it hangs. Others wait for {@value #LEASE_S} seconds.
 *
 * <p>{@link #step} is confined to one thread; {@link #leads} may be called by any.
 */
final class Election {
  /** After so many seconds without a renewal, another process may take over. */
  static final int LEASE_S = 15;

  /** After so many seconds without a renewal, the leader stops. */
  static final int RENEW_S = 10;

  private final Lock lock;
  private final KubernetesClient client;
  private final DoubleSupplier clockS;
  private final Supplier<ZonedDateTime> wall;
  private @Nullable LeaderElectionRecord seen;
  private double seenS;

  /** How often this process has got the lease from others, or from nobody. */
  private volatile int term;

  /** When the request for the last renewal began; negative infinity if it does not hold a lease. */
  private volatile double renewedS = Double.NEGATIVE_INFINITY;

  /**
   * Creates it; it does not lead.
   *
   * @param lock the lease
   * @param client reads and writes the lease
   * @param clockS seconds of a monotonic clock, which measures ages
   * @param wall the time that is written to the lease, for people
   */
  Election(
      Lock lock, KubernetesClient client, DoubleSupplier clockS, Supplier<ZonedDateTime> wall) {
    this.lock = lock;
    this.client = client;
    this.clockS = clockS;
    this.wall = wall;
  }

  /** {@return whether this process leads now} */
  boolean leads() {
    return clockS.getAsDouble() - renewedS < RENEW_S;
  }

  /**
   * {@return the number of the current or last term} Between two terms, another process may have
   * led.
   */
  int term() {
    return term;
  }

  /**
   * Tries once to get the lease, or to keep it. Blocks until the API server answers.
   *
   * @return whether this process holds the lease; if not, another one does
   * @throws io.fabric8.kubernetes.client.KubernetesClientException if that is not known: the API
   *     server does not answer, or the lease has just been changed
   */
  boolean step() {
    double beganS = clockS.getAsDouble();
    LeaderElectionRecord record = lock.get(client);
    ZonedDateTime now = wall.get();
    if (record == null) {
      lock.create(client, record(now, now, 0));
      beginTerm();
    } else if (isOwn(record)) {
      lock.update(client, record(record.getAcquireTime(), now, record.getLeaderTransitions()));
    } else if (isFree(record)) {
      lock.update(client, record(now, now, record.getLeaderTransitions() + 1));
      beginTerm();
    } else {
      renewedS = Double.NEGATIVE_INFINITY;
      return false;
    }
    renewedS = beganS;
    return true;
  }

  /** Before it leads again, so that nobody takes the new term for the old one. */
  @SuppressWarnings("NonAtomicVolatileUpdate") // one thread writes
  private void beginTerm() {
    term = term + 1;
  }

  private boolean isOwn(LeaderElectionRecord record) {
    return lock.identity().equals(record.getHolderIdentity());
  }

  private boolean isFree(LeaderElectionRecord record) {
    double nowS = clockS.getAsDouble();
    if (!record.equals(seen)) {
      seen = record;
      seenS = nowS;
    }
    String holder = record.getHolderIdentity();
    return holder == null || holder.isEmpty() || nowS - seenS > LEASE_S;
  }

  private LeaderElectionRecord record(ZonedDateTime since, ZonedDateTime now, int transitions) {
    return new LeaderElectionRecord(
        lock.identity(), Duration.ofSeconds(LEASE_S), since, now, transitions);
  }

  /** Gives the lease to others, if this process holds it. */
  void release() {
    if (renewedS == Double.NEGATIVE_INFINITY) {
      return;
    }
    renewedS = Double.NEGATIVE_INFINITY;
    LeaderElectionRecord record = lock.get(client);
    if (record != null && isOwn(record)) {
      lock.update(
          client,
          new LeaderElectionRecord(
              "", Duration.ofSeconds(1), wall.get(), wall.get(), record.getLeaderTransitions()));
    }
  }
}
