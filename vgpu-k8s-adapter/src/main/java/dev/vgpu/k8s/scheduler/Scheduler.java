package dev.vgpu.k8s.scheduler;

import dev.vgpu.k8s.scheduler.line.PodLine;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.Lock;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.time.ZonedDateTime;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.DoubleSupplier;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The parts of the role {@code scheduler}. It has no thread that decides by itself: {@link #elect},
 * {@link #read} and {@link #tick} are called from outside, again and again. Must be closed.
 */
final class Scheduler implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Scheduler.class);
  private static final int WRITERS = 16;

  /** Gangs whose group objects are looked for in each tick. */
  private static final int LOOKUPS = 8;

  private final DoubleSupplier clockS;
  private final Election election;
  private final ExecutorService writers = Executors.newFixedThreadPool(WRITERS);
  private final PodLine line;
  private final ExtenderService service;
  private final ClusterWatch watch;
  private final @Nullable ClaimWatch claims;
  private final ExtenderServer server;

  /** The term of the election for which the state was read from the API; 0 before the first. */
  private volatile int known;

  /**
   * Starts to listen; leads nobody yet.
   *
   * @param reads follows the API, and renews the lease
   * @param writes writes to pods: no call of it may take longer than the rest of a lease that was
   *     not renewed in time, {@link Election#LEASE_S} - {@link Election#RENEW_S}
   * @param lock the lease
   * @param options what a user may choose
   * @param clockS seconds of a monotonic clock
   * @param wall the time of day
   * @throws IOException if it cannot listen
   */
  Scheduler(
      KubernetesClient reads,
      KubernetesClient writes,
      Lock lock,
      Options options,
      DoubleSupplier clockS,
      Supplier<ZonedDateTime> wall)
      throws IOException {
    this.clockS = clockS;
    election = new Election(lock, reads, clockS, wall);
    line = new PodLine(options.policy());
    Cluster cluster = new Cluster(writes, election::leads);
    claims =
        options.hasGangClaims()
            ? new ClaimWatch(reads, cluster, options.hold(), clockS, wall)
            : null;
    ExtenderService.ClaimFilter filter =
        claims == null ? (pod, nodes) -> Map.of() : claims::refusals;
    service =
        new ExtenderService(line, cluster, writers, clockS, options.hold(), filter, this::find);
    watch = new ClusterWatch(reads, line, service, clockS);
    server = new ExtenderServer(options.address(), options.tls(), service, this::leads);
  }

  /**
   * What a user may choose. Immutable.
   *
   * @param address where the extender listens
   * @param tls the certificates of the extender and of those who may ask it; empty: anybody may
   * @param hold how long a bind waits for the rest of its gang
   * @param policy the placement policy's name
   * @param hasGangClaims whether it also decides when pods with claims may be bound
   */
  record Options(
      InetSocketAddress address,
      Optional<SSLContext> tls,
      Duration hold,
      String policy,
      boolean hasGangClaims) {}

  private Optional<Pod> find(String namespace, String name, String uid) {
    return watch.find(namespace, name, uid);
  }

  /** {@return the port on which it listens} */
  int port() {
    return server.port();
  }

  /** {@return whether it leads, and knows the cluster's state} */
  boolean leads() {
    return known == election.term() && election.leads();
  }

  /**
   * Tries once to get the lease or to keep it. While the API server is away it does not lead, and
   * keeps its state: if nobody else has got the lease by then, it goes on. Blocks until the API
   * server answers.
   *
   * @return false if it led, and another one leads now: its state is of no use any more
   */
  boolean elect() {
    try {
      return election.step() || known == 0;
    } catch (KubernetesClientException e) {
      LOG.warn("cannot get or renew its lease: {}", e.getMessage());
      return true;
    }
  }

  /**
   * Reads the cluster's state, if it has got the lease since it did so last; only then it leads. In
   * a large cluster this may take longer than the lease lasts without {@link #elect}, so another
   * thread calls that. Blocks until the API server answers.
   */
  void read() {
    int term = election.term();
    if (known == term || !election.leads()) {
      return;
    }
    try {
      watch.begin();
      if (claims != null) {
        claims.begin();
      }
      known = term;
      service.carryOut(); // from here on: what it wakes is asked about at once
      LOG.info("leads");
    } catch (KubernetesClientException e) {
      LOG.warn("cannot read the cluster's state: {}", e.getMessage());
    }
  }

  /** Decides again, because time has passed. */
  void tick() {
    if (leads()) {
      line.tick(clockS.getAsDouble());
      service.lookForSizes(LOOKUPS);
      if (claims != null) {
        claims.tick(watch.pods(), watch.nodes());
      }
    }
  }

  /** Stops answering, and gives the lease to others if the API server can be reached. */
  @Override
  public void close() {
    server.close();
    watch.close();
    if (claims != null) {
      claims.close();
    }
    writers.shutdownNow();
    try {
      election.release();
    } catch (KubernetesClientException e) {
      LOG.warn("its lease ends by itself: {}", e.getMessage());
    }
  }
}
