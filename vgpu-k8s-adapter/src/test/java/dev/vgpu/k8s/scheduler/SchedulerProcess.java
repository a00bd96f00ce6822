package dev.vgpu.k8s.scheduler;

import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.k8s.time.NanoClock;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * The {@code scheduler} role as a process, with a port of its choice and gangs with claims: {@code
 * API-URL}.
 */
final class SchedulerProcess {
  private static final int HOLD_S = 3;

  private SchedulerProcess() {}

  /** Runs until it is killed. */
  public static void main(String[] args) throws IOException, InterruptedException {
    KubernetesClient client =
        new KubernetesClientBuilder()
            .withConfig(new ConfigBuilder().withMasterUrl(args[0]).build())
            .build();
    Scheduler scheduler =
        new Scheduler(
            client,
            client,
            new LeaseLock("default", "lease", Long.toString(ProcessHandle.current().pid())),
            new Scheduler.Options(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
                Optional.empty(),
                Duration.ofSeconds(HOLD_S),
                Policies.OURS,
                true),
            NanoClock.seconds(),
            NanoClock::wall);
    CountDownLatch never = new CountDownLatch(1);
    boolean isSaid = false;
    do {
      boolean ignored = scheduler.elect();
      scheduler.read();
      scheduler.tick();
      if (scheduler.leads() && !isSaid) {
        isSaid = true;
        System.out.println("ready " + scheduler.port());
        System.out.flush();
      }
    } while (!never.await(200, TimeUnit.MILLISECONDS));
  }
}
