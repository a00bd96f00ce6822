package dev.vgpu.k8s.node.dra;

import static java.net.HttpURLConnection.HTTP_FORBIDDEN;

import dev.vgpu.GpuPool;
import dev.vgpu.k8s.http.ApiFailures;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.holding.Holdings;
import dev.vgpu.k8s.node.socket.UnixServer;
import dev.vgpu.k8s.time.NanoClock;
import dev.vgpu.watch.GpuEvent;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The DRA driver of a node: its sockets and its ResourceSlices. Safe for use by several threads.
 */
public final class DraDriver implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(DraDriver.class);
  private static final long PUBLISH_SECONDS = 10;

  private final UnixServer plugin;
  private final UnixServer registration;
  private final GpuPool.Listening listening;
  private final List<Attempt> settling;

  private DraDriver(
      UnixServer plugin,
      UnixServer registration,
      GpuPool.Listening listening,
      List<Attempt> settling) {
    this.plugin = plugin;
    this.registration = registration;
    this.listening = listening;
    this.settling = settling;
  }

  /**
   * The objects that the driver uses.
   *
   * @param api the API server
   * @param pool the node's GPUs
   * @param conditions their conditions
   * @param holdings what is held
   * @param node the node's name
   * @param offlineFloor the pool's offline floor, in percent
   * @param isConditional whether pods are bound only when their gangs are complete
   */
  public record Parts(
      KubernetesClient api,
      GpuPool pool,
      GpuConditions conditions,
      Holdings holdings,
      String node,
      int offlineFloor,
      boolean isConditional) {}

  /**
   * Two threads. The kubelet takes the health to be unknown if it is not told for 30 s, and a call
   * of the API server is tried for minutes.
   *
   * @param health tells the kubelet the health of the GPUs
   * @param remote asks the API server
   */
  public record Timers(ScheduledExecutorService health, ScheduledExecutorService remote) {}

  /**
   * {@return the driver, registered so that the kubelet finds it}
   *
   * @param parts the objects that it uses
   * @param pluginDirectory where its own socket goes
   * @param registryDirectory where the kubelet looks for plugins
   * @param threads runs the services
   * @param timers look periodically
   * @throws IOException if it cannot listen
   */
  public static DraDriver open(
      Parts parts,
      Path pluginDirectory,
      Path registryDirectory,
      UnixServer.Threads threads,
      Timers timers)
      throws IOException {
    NodeDevices devices =
        new NodeDevices(
            parts.pool(),
            parts.conditions(),
            parts.node(),
            PcieRoot.DEVICES,
            parts.holdings()::all);
    SlicePublisher slices =
        new SlicePublisher(parts.api(), devices, parts.node(), parts.isConditional());
    Path endpoint = pluginDirectory.resolve("dra.sock");
    ClaimPlugin claims =
        new ClaimPlugin(
            parts.api(),
            parts.holdings(),
            () -> new Claims(parts.node(), devices.all(), parts.offlineFloor()),
            parts.node());
    HealthWatch health =
        new HealthWatch(devices, parts.conditions(), parts.node(), NanoClock::wall);
    UnixServer plugin = UnixServer.open(endpoint, threads, claims, health);
    UnixServer registration;
    try {
      registration =
          UnixServer.open(
              registryDirectory.resolve(Driver.NAME + "-reg.sock"),
              threads,
              new ClaimRegistration(endpoint));
    } catch (IOException e) {
      plugin.close();
      throw e;
    }
    Attempt publishing = new Attempt("the GPUs are not published", slices::publish);
    Runnable look = looking(health, publishing, timers.remote());
    Attempt settle = new Attempt("what claims had before is not settled", () -> settle(parts));
    Attempt taken = new Attempt("what slots leave is not published", slices::publishTaken);
    Future<?> ignored =
        timers.health().scheduleWithFixedDelay(look, 0, PUBLISH_SECONDS, TimeUnit.SECONDS);
    GpuPool.Listening listening =
        parts
            .pool()
            .listen(
                event -> {
                  if (event instanceof GpuEvent.HealthChanged) {
                    timers.health().execute(look);
                  }
                });
    return new DraDriver(plugin, registration, listening, List.of(settle, taken));
  }

  /**
   * Settles what claims had before, and publishes what slots leave. To be called every second, on
   * the thread that asks the API server.
   */
  public void settle() {
    settling.forEach(Attempt::run);
  }

  /** Tells the health, and has the slices published apart from that: the API server may hang. */
  private static Runnable looking(
      HealthWatch health, Attempt publishing, ScheduledExecutorService remote) {
    AtomicBoolean isQueued = new AtomicBoolean();
    Attempt telling = new Attempt("the GPUs' health is not told", health::tell);
    return () -> {
      telling.run();
      if (isQueued.compareAndSet(false, true)) {
        remote.execute(
            () -> {
              isQueued.set(false);
              publishing.run();
            });
      }
    };
  }

  private static void settle(Parts parts) {
    try {
      boolean ignored = ClaimPlugin.settle(parts.api(), parts.node(), parts.holdings());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * A step that is tried again and again. What the API server does not have, or does not allow, is
   * said once: slots are served without it. Confined to one thread at a time.
   */
  private static final class Attempt implements Runnable {
    private final String failure;
    private final Runnable step;

    /** The HTTP status of what was said; 0 if nothing is missing. */
    private int missing;

    Attempt(String failure, Runnable step) {
      this.failure = failure;
      this.step = step;
    }

    @Override
    public void run() {
      try {
        step.run();
        missing = 0;
      } catch (KubernetesClientException e) {
        if (!ApiFailures.isMissing(e)) {
          log.warn("{}, and it will be tried again", failure, e);
        } else if (missing != e.getCode()) {
          missing = e.getCode();
          log.warn("{}: {}: {}", failure, lack(e.getCode()), e.getMessage());
        }
      } catch (RuntimeException e) { // the timer would not call again after one
        log.warn("{}, and it will be tried again", failure, e);
      }
    }

    private static String lack(int status) {
      return status == HTTP_FORBIDDEN
          ? "the role's account lacks permissions that deploy/base/node-rbac.yaml has"
          : "the API server has no such object or kind; ResourceSlices need Kubernetes 1.34";
    }
  }

  @Override
  public void close() {
    listening.close();
    registration.close();
    plugin.close();
  }
}
