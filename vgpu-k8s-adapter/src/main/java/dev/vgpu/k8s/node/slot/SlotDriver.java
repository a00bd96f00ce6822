package dev.vgpu.k8s.node.slot;

import dev.vgpu.GpuPool;
import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.holding.Holdings;
import dev.vgpu.k8s.node.socket.UnixServer;
import io.fabric8.kubernetes.client.KubernetesClient;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The device plugin of a node. Registers with the kubelet, and again after each restart of the
 * kubelet, which removes the sockets of all device plugins. Safe for use by several threads.
 *
 * <p>{@link #register}, {@link #tell} and {@link #ask} are to be called every second, each on a
 * thread of its own. The kubelet needs its plugin, and the health of its GPUs, even if the API
 * server does not answer: a call of the API server is tried for minutes. The GPUs' driver may hang,
 * too.
 */
public final class SlotDriver implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SlotDriver.class);

  private final List<SlotService> services;
  private final NodeNote note;

  private SlotDriver(List<SlotService> services, NodeNote note) {
    this.services = services;
    this.note = note;
  }

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
   * {@return the device plugin}
   *
   * @param parts the objects that it uses
   * @param directory where the kubelet's socket for device plugins is
   * @param threads runs the services
   */
  public static SlotDriver open(Parts parts, Path directory, UnixServer.Threads threads) {
    List<SlotService> services =
        parts.offered().stream()
            .map(
                resource ->
                    new SlotService(directory, threads, resource, new SlotPlugin(parts, resource)))
            .toList();
    return new SlotDriver(services, new NodeNote(parts));
  }

  /** Registers with the kubelet, unless that is done. */
  public void register() {
    services.forEach(service -> attempt("the kubelet", service::register));
  }

  /** Tells the kubelet the health of the GPUs, if it has changed. */
  public void tell() {
    attempt("the GPUs' driver", () -> services.forEach(SlotService::tell));
  }

  /** Asks the API server and the kubelet what has changed. */
  public void ask() {
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
    services.forEach(SlotService::close);
  }
}
