package dev.vgpu.k8s.node;

import dev.vgpu.GpuPool;
import dev.vgpu.k8s.node.dra.DraDriver;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.node.holding.Holdings;
import dev.vgpu.k8s.node.holding.Step;
import dev.vgpu.k8s.node.metrics.ContainerMetrics;
import dev.vgpu.k8s.node.metrics.HttpEndpoint;
import dev.vgpu.k8s.node.slot.SlotDriver;
import dev.vgpu.k8s.node.slot.SlotOwners;
import dev.vgpu.k8s.node.socket.UnixServer;
import io.fabric8.kubernetes.client.KubernetesClient;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The running {@code node} role. Safe for use by several threads.
 *
 * <p>Closing it stops the services, but not the virtual GPUs: they end with the process, and the
 * next process continues from the records. An update of the program is therefore the same as a
 * crash.
 */
public final class NodeAgent implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(NodeAgent.class);
  private static final int THREADS = 4;
  private static final long TEND_SECONDS = 1;

  /** Closed in reverse order. */
  private final Deque<AutoCloseable> opened = new ArrayDeque<>();

  private final Holdings holdings;
  private final HttpEndpoint http;
  private final Optional<SlotDriver> slots;
  private final DraDriver claims;

  private NodeAgent(NodeSettings settings, KubernetesClient api, GpuPool pool, Step.Listener steps)
      throws IOException {
    lock(settings.pluginDirectory());
    holdings =
        new Holdings(
            pool, settings.pluginDirectory().resolve("held"), settings.cdiDirectory(), steps);
    holdings.replay(holding -> isWanted(settings, holding));
    holdings.rehearse();
    UnixServer.Threads threads = open(UnixServer.Threads.open(THREADS));
    ScheduledExecutorService timer = timer();
    ScheduledExecutorService asking = timer();
    ScheduledExecutorService telling = timer();
    SlotOwners owners = open(new SlotOwners(settings.podResources(), threads));
    GpuConditions conditions = open(new GpuConditions(pool));
    slots =
        settings.slots() == 0
            ? Optional.empty()
            : Optional.of(
                open(
                    SlotDriver.open(
                        new SlotDriver.Parts(
                            api,
                            pool,
                            conditions,
                            holdings,
                            owners,
                            settings.node(),
                            settings.slots(),
                            settings.offered()),
                        settings.devicePluginDirectory(),
                        threads)));
    claims =
        open(
            DraDriver.open(
                new DraDriver.Parts(
                    api,
                    pool,
                    conditions,
                    holdings,
                    settings.node(),
                    settings.offlineFloor(),
                    settings.hasGangClaims()),
                settings.pluginDirectory(),
                settings.registryDirectory(),
                threads,
                new DraDriver.Timers(telling, asking)));
    ContainerMetrics metrics =
        new ContainerMetrics(
            pool, conditions, holdings, new ContainersOf(api, owners), settings.node());
    http = open(HttpEndpoint.open(settings.metricsPort(), metrics::text));
    everySecond(timer, this::tend);
    everySecond(asking, this::ask);
    slots.ifPresent(driver -> everySecond(telling, driver::tell));
  }

  /** One task for each thread: each wake costs more than what there is to do at rest. */
  private void everySecond(ScheduledExecutorService timer, Runnable task) {
    Future<?> looking = timer.scheduleWithFixedDelay(task, 0, TEND_SECONDS, TimeUnit.SECONDS);
    opened.push(() -> looking.cancel(false));
  }

  private ScheduledExecutorService timer() {
    ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
    opened.push(timer::shutdownNow);
    return timer;
  }

  /**
   * A slot is wanted while its resource is offered: then the device plugin looks after it. Whether
   * a claim is there only the API server knows, and the kubelet does not wait for that.
   */
  private static boolean isWanted(NodeSettings settings, Holding holding) {
    return holding.owner().podUid().isEmpty()
        || settings.offered().stream().anyMatch(one -> one.owns(holding.key()));
  }

  /**
   * {@return the role, which serves the kubelet}
   *
   * @param settings where it works
   * @param api the API server
   * @param pool the node's GPUs; owned by the caller, and left open
   * @param steps is notified of each step of taking and giving back
   * @throws IOException if it cannot listen or write, or another process works there
   */
  public static NodeAgent open(
      NodeSettings settings, KubernetesClient api, GpuPool pool, Step.Listener steps)
      throws IOException {
    return new NodeAgent(settings, api, pool, steps);
  }

  private <T extends AutoCloseable> T open(T part) {
    opened.push(part);
    return part;
  }

  /** Two agents at once would both act on the same records. */
  private void lock(Path directory) throws IOException {
    Files.createDirectories(directory);
    FileChannel channel =
        open(
            FileChannel.open(
                directory.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE));
    FileLock lock;
    try {
      lock = channel.tryLock();
    } catch (OverlappingFileLockException e) {
      lock = null;
    }
    if (lock == null) {
      channel.close();
      throw new IOException("another vgpu-k8s node works in " + directory + "; end it first");
    }
  }

  private void tend() {
    slots.ifPresent(SlotDriver::register);
    try {
      holdings.tend();
    } catch (RuntimeException e) {
      log.warn("what is held cannot be looked after, and will be again", e);
    }
  }

  private void ask() {
    slots.ifPresent(SlotDriver::ask);
    claims.settle();
  }

  /** {@return what is held now} */
  public Holdings holdings() {
    return holdings;
  }

  /** {@return the port of {@code /metrics}} */
  public int metricsPort() {
    return http.port();
  }

  @Override
  public void close() {
    for (AutoCloseable part : opened) {
      try {
        part.close();
      } catch (Exception e) {
        log.debug("closing", e);
      }
    }
  }
}
