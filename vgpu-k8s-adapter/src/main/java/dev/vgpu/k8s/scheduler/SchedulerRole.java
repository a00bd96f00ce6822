package dev.vgpu.k8s.scheduler;

import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.k8s.http.TlsFiles;
import dev.vgpu.k8s.time.NanoClock;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** The role {@code scheduler}: of several such processes, the elected leader answers. */
@Command(name = "scheduler", description = "Decide which GPUs pods get, beside kube-scheduler.")
public final class SchedulerRole implements Callable<Integer> {
  private static final Logger LOG = LoggerFactory.getLogger(SchedulerRole.class);
  private static final int RETRY_S = 2;
  private static final String LEASE = "vgpu-scheduler";

  @Option(
      names = "--port",
      defaultValue = "8899",
      description = "HTTP port (default: ${DEFAULT-VALUE}).")
  private int port;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Option(
      names = "--namespace",
      defaultValue = "vgpu-system",
      description = "Namespace of the leader's lease (default: ${DEFAULT-VALUE}).")
  private String namespace;

  @Option(
      names = "--hold",
      defaultValue = "60",
      description =
          "Seconds that a bind waits for the rest of its gang (default: ${DEFAULT-VALUE}).")
  private int holdS;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Option(
      names = "--policy",
      defaultValue = Policies.OURS,
      description = "Placement policy (default: ${DEFAULT-VALUE}).")
  private String policy;

  @Option(
      names = "--gang-claims",
      description =
          "Decide when gangs with claims may be bound, on nodes with vgpu-k8s node --gang-claims"
              + " (default: no).")
  private boolean hasGangClaims;

  @ArgGroup(exclusive = false)
  private @Nullable TlsOptions tls;

  /** All of them are given, or none. */
  private static final class TlsOptions {
    @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
    @Option(
        names = "--tls-certificate",
        required = true,
        paramLabel = "FILE",
        description = "Serve HTTPS with this certificate (PEM; default: HTTP).")
    private Path certificate;

    @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
    @Option(
        names = "--tls-key",
        required = true,
        paramLabel = "FILE",
        description = "The certificate's key (PEM).")
    private Path key;

    @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
    @Option(
        names = "--client-ca",
        required = true,
        paramLabel = "FILE",
        description = "Answer only clients with a certificate of this authority (PEM).")
    private Path clientAuthority;
  }

  /** Used by picocli, which then sets the options. */
  public SchedulerRole() {}

  @Override
  public Integer call() throws IOException, InterruptedException {
    try (KubernetesClient reads = new KubernetesClientBuilder().build();
        KubernetesClient writes =
            new KubernetesClientBuilder().withConfig(ofWrites(reads.getConfiguration())).build()) {
      return serve(reads, writes);
    }
  }

  /**
   * {@return a configuration whose requests end before another process may lead} So a leader that
   * was cut off does not repeat a write when another one has decided already.
   */
  static Config ofWrites(Config reads) {
    return new ConfigBuilder(reads)
        .withRequestTimeout(1000 * (Election.LEASE_S - Election.RENEW_S - 1))
        .withRequestRetryBackoffLimit(0)
        .build();
  }

  private int serve(KubernetesClient reads, KubernetesClient writes)
      throws IOException, InterruptedException {
    ScheduledExecutorService elections = Executors.newSingleThreadScheduledExecutor();
    ScheduledExecutorService ticks = Executors.newSingleThreadScheduledExecutor();
    CountDownLatch lost = new CountDownLatch(1);
    String identity = UUID.randomUUID().toString();
    try (Scheduler scheduler =
        new Scheduler(
            reads,
            writes,
            new LeaseLock(namespace, LEASE, identity),
            new Scheduler.Options(
                new InetSocketAddress(port),
                certificates(),
                Duration.ofSeconds(holdS),
                policy,
                hasGangClaims),
            NanoClock.seconds(),
            NanoClock::wall)) {
      LOG.info("serves on port {} as {}", scheduler.port(), identity);
      Thread ending = new Thread(scheduler::close);
      Runtime.getRuntime().addShutdownHook(ending);
      ScheduledFuture<?> electing =
          elections.scheduleWithFixedDelay(
              () -> {
                if (!isInOffice(scheduler)) {
                  lost.countDown();
                }
                // Not only at the next tick: a leader answers nobody before it has read.
                ticks.execute(() -> inform(scheduler, lost));
              },
              0,
              RETRY_S,
              TimeUnit.SECONDS);
      ScheduledFuture<?> ticking =
          ticks.scheduleWithFixedDelay(
              () -> {
                inform(scheduler, lost);
                tick(scheduler);
              },
              1,
              1,
              TimeUnit.SECONDS);
      lost.await(); // then it restarts without state
      LOG.warn("lost its lease, so this process ends: lease={}/{}", namespace, LEASE);
      boolean ignored = electing.cancel(true);
      ignored = ticking.cancel(true);
      ignored = Runtime.getRuntime().removeShutdownHook(ending);
      return 1;
    } finally {
      elections.shutdownNow();
      ticks.shutdownNow();
    }
  }

  private Optional<SSLContext> certificates() throws IOException {
    return tls == null
        ? Optional.empty()
        : Optional.of(new TlsFiles(tls.certificate, tls.key, tls.clientAuthority).read());
  }

  /** A failure must not end the ticks, of which nobody would be told. */
  private static void tick(Scheduler scheduler) {
    try {
      scheduler.tick();
    } catch (RuntimeException e) {
      LOG.error("a decision failed", e);
    }
  }

  /** It does not go on if it cannot use the cluster's state. */
  private static void inform(Scheduler scheduler, CountDownLatch lost) {
    try {
      scheduler.read();
    } catch (RuntimeException e) {
      LOG.error("the cluster's state cannot be used", e);
      lost.countDown();
    }
  }

  /** {@return whether it may go on; not if another one leads now, or it has failed} */
  private static boolean isInOffice(Scheduler scheduler) {
    try {
      return scheduler.elect();
    } catch (RuntimeException e) {
      LOG.error("the election failed", e);
      return false;
    }
  }
}
