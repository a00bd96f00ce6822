package dev.vgpu.k8s.scheduler;

import dev.vgpu.fleet.placement.Policies;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElector;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.DoubleSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** The role {@code scheduler}: of several such processes, the elected leader answers. */
@Command(name = "scheduler", description = "Decide which GPUs pods get, beside kube-scheduler.")
public final class SchedulerRole implements Callable<Integer> {
  private static final Logger LOG = LoggerFactory.getLogger(SchedulerRole.class);
  private static final int WRITERS = 16;
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

  /** Used by picocli, which then sets the options. */
  public SchedulerRole() {}

  @Override
  public Integer call() throws IOException {
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      return serve(client);
    }
  }

  private int serve(KubernetesClient client) throws IOException {
    DoubleSupplier clockS = NanoClock.seconds();
    PodLine line = new PodLine(policy);
    ExecutorService writers = Executors.newFixedThreadPool(WRITERS);
    ScheduledExecutorService ticks = Executors.newSingleThreadScheduledExecutor();
    ExtenderService service =
        new ExtenderService(line, new Cluster(client), writers, clockS, Duration.ofSeconds(holdS));
    AtomicBoolean leads = new AtomicBoolean();
    try (ClusterWatch watch = new ClusterWatch(client, line, service, clockS);
        ExtenderServer server =
            new ExtenderServer(new InetSocketAddress(port), service, leads::get)) {
      LOG.info("serves on port {}", server.port());
      var ticking =
          ticks.scheduleWithFixedDelay(
              () -> {
                if (leads.get()) {
                  line.tick(clockS.getAsDouble());
                  service.carryOut();
                }
              },
              1,
              1,
              TimeUnit.SECONDS);
      elector(client, watch, leads).run(); // returns when the lease is lost; restarts without state
      LOG.warn("lost its lease, so this process ends: lease={}/{}", namespace, LEASE);
      boolean ignored = ticking.cancel(true);
      return 1;
    } finally {
      writers.shutdownNow();
      ticks.shutdownNow();
    }
  }

  private LeaderElector elector(KubernetesClient client, ClusterWatch watch, AtomicBoolean leads) {
    return client
        .leaderElector()
        .withConfig(
            new LeaderElectionConfigBuilder()
                .withName(LEASE)
                .withLock(
                    new ObservedLock(
                        new LeaseLock(namespace, LEASE, UUID.randomUUID().toString()),
                        NanoClock.seconds(),
                        NanoClock::wall))
                .withLeaseDuration(Duration.ofSeconds(15))
                .withRenewDeadline(Duration.ofSeconds(10))
                .withRetryPeriod(Duration.ofSeconds(2))
                .withReleaseOnCancel(true)
                .withLeaderCallbacks(
                    new LeaderCallbacks(
                        () -> {
                          watch.begin();
                          leads.set(true);
                          LOG.info("leads: lease={}/{}", namespace, LEASE);
                        },
                        () -> {
                          leads.set(false);
                          watch.end();
                        },
                        leader -> {}))
                .build())
        .build();
  }
}
