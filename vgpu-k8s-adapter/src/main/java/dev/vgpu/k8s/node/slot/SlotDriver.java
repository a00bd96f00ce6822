package dev.vgpu.k8s.node.slot;

import static java.util.concurrent.TimeUnit.SECONDS;

import dev.vgpu.GpuPool;
import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.holding.Holdings;
import dev.vgpu.k8s.node.socket.UnixServer;
import io.fabric8.kubernetes.client.KubernetesClient;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The device plugin of a node. Registers with the kubelet, and again after each restart of the
 * kubelet, which removes the sockets of all device plugins. Safe for use by several threads.
 */
public final class SlotDriver implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SlotDriver.class);
  private static final long LOOK_SECONDS = 1;

  private final List<SlotService> services;
  private final NodeNote note;
  private final List<ScheduledFuture<?>> looking;

  private SlotDriver(List<SlotService> services, NodeNote note, Timers timers) {
    this.services = services;
    this.note = note;
    this.looking =
        List.of(
            timers.local().scheduleWithFixedDelay(this::register, 0, LOOK_SECONDS, SECONDS),
            timers.health().scheduleWithFixedDelay(this::tell, 0, LOOK_SECONDS, SECONDS),
            timers.remote().scheduleWithFixedDelay(this::ask, 0, LOOK_SECONDS, SECONDS));
  }

  /**
   * Three threads. The kubelet needs its plugin, and the health of its GPUs, even if the API server
   * does not answer: a call of the API server is tried for minutes. The GPUs' driver may hang, too.
   *
   * @param local checks periodically whether the kubelet has restarted
   * @param health tells the kubelet the health of the GPUs
   * @param remote asks the API server
   */
  public record Timers(
      ScheduledExecutorService local,
      ScheduledExecutorService health,
      ScheduledExecutorService remote) {}

  /**
   * The objects that the device plugin uses.
   *
   * @param api the API server
   * @param pool the node's GPUs
   * @param conditions their conditions
   * @param holdings what is held
   * @param owners which container has which slot
   * @param node the node's name
   * @param slots how many containers may have a virtual GPU
   * @param offered the resources by which they may ask for one
   */
  public record Parts(
      KubernetesClient api,
      GpuPool pool,
      GpuConditions conditions,
      Holdings holdings,
      SlotOwners owners,
      String node,
      int slots,
      List<KubeletResource> offered) {}

  /**
   * {@return the device plugin, which registers itself}
   *
   * @param parts the objects that it uses
   * @param directory where the kubelet's socket for device plugins is
   * @param threads runs the services
   * @param timers look periodically
   */
  public static SlotDriver open(
      Parts parts, Path directory, UnixServer.Threads threads, Timers timers) {
    List<SlotService> services =
        parts.offered().stream()
            .map(
                resource ->
                    new SlotService(directory, threads, resource, new SlotPlugin(parts, resource)))
            .toList();
    NodeNote note = new NodeNote(parts);
    return new SlotDriver(services, note, timers);
  }

  private void register() {
    services.forEach(service -> attempt("the kubelet", service::register));
  }

  private void tell() {
    attempt("the GPUs' driver", () -> services.forEach(SlotService::tell));
  }

  private void ask() {
    attempt("the API server", note::publish);
    services.forEach(service -> attempt("the kubelet or the API server", service::reconcile));
  }

  private interface Look {
    void run() throws IOException;
  }

  private static void attempt(String asked, Look look) {
    try {
      look.run();
    } catch (IOException | RuntimeException e) { // the timer would not call again after one
      log.warn("{} cannot be asked, and will be again: {}", asked, e.getMessage());
      log.debug("why", e);
    }
  }

  @Override
  public void close() {
    looking.forEach(one -> one.cancel(false));
    services.forEach(SlotService::close);
  }
}
