package dev.vgpu.k8s.node.slot;

import dev.vgpu.GpuPool;
import dev.vgpu.k8s.Driver;
import dev.vgpu.k8s.node.holding.Holdings;
import dev.vgpu.k8s.node.socket.UnixChannel;
import dev.vgpu.k8s.node.socket.UnixServer;
import dev.vgpu.k8s.proto.deviceplugin.Empty;
import dev.vgpu.k8s.proto.deviceplugin.RegisterRequest;
import dev.vgpu.k8s.proto.deviceplugin.RegistrationGrpc;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Objects;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The device plugin of a node. Registers with the kubelet, and again after each restart of the
 * kubelet, which removes the sockets of all device plugins. Safe for use by several threads.
 */
public final class SlotDriver implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SlotDriver.class);
  private static final String SOCKET = "vgpu.dev.sock";
  private static final long LOOK_SECONDS = 1;
  private static final long TIMEOUT_SECONDS = 10;

  private final Path directory;
  private final UnixServer.Threads threads;
  private final SlotPlugin plugin;
  private final NodeNote note;
  private final ScheduledFuture<?> looking;

  // Confined to the timer's thread, except in close().
  private volatile @Nullable UnixServer server;
  private @Nullable Object registeredWith;

  private SlotDriver(
      Path directory,
      UnixServer.Threads threads,
      SlotPlugin plugin,
      NodeNote note,
      ScheduledExecutorService timer) {
    this.directory = directory;
    this.threads = threads;
    this.plugin = plugin;
    this.note = note;
    this.looking = timer.scheduleWithFixedDelay(this::look, 0, LOOK_SECONDS, TimeUnit.SECONDS);
  }

  /**
   * The objects that the device plugin uses.
   *
   * @param api the API server
   * @param pool the node's GPUs
   * @param holdings what is held
   * @param owners which container has which slot
   * @param node the node's name
   * @param slots how many containers may have a virtual GPU
   */
  public record Parts(
      KubernetesClient api,
      GpuPool pool,
      Holdings holdings,
      SlotOwners owners,
      String node,
      int slots) {}

  /**
   * {@return the device plugin, which registers itself}
   *
   * @param parts the objects that it uses
   * @param directory where the kubelet's socket for device plugins is
   * @param threads runs the services
   * @param timer checks periodically whether the kubelet has restarted
   */
  public static SlotDriver open(
      Parts parts, Path directory, UnixServer.Threads threads, ScheduledExecutorService timer) {
    SlotPlugin plugin = new SlotPlugin(parts);
    NodeNote note = new NodeNote(parts.api(), parts.pool(), parts.node());
    return new SlotDriver(directory, threads, plugin, note, timer);
  }

  private void look() {
    // Separate, because the kubelet needs its plugin even if the API server does not answer.
    attempt("the API server", note::publish);
    attempt(
        "the kubelet or the API server",
        () -> {
          register();
          plugin.reconcile();
        });
  }

  private interface Look {
    void run() throws IOException;
  }

  private static void attempt(String asked, Look look) {
    try {
      look.run();
    } catch (IOException
        | StatusRuntimeException
        | KubernetesClientException
        | IllegalStateException e) {
      log.warn("{} cannot be asked, and will be again: {}", asked, e.getMessage());
      log.debug("why", e);
    }
  }

  private void register() throws IOException {
    Path kubelet = directory.resolve("kubelet.sock");
    if (!Files.exists(kubelet)) {
      registeredWith = null;
      return;
    }
    Object now =
        Objects.requireNonNull(
            Files.readAttributes(kubelet, BasicFileAttributes.class).fileKey(), "key");
    UnixServer present = server;
    if (present != null && present.isThere() && now.equals(registeredWith)) {
      return;
    }
    if (present != null) {
      present.close();
    }
    server = UnixServer.open(directory.resolve(SOCKET), threads, plugin);
    ManagedChannel channel = UnixChannel.to(kubelet, threads);
    try {
      Empty ignored =
          RegistrationGrpc.newBlockingStub(channel)
              .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS)
              .register(
                  RegisterRequest.newBuilder()
                      .setVersion("v1beta1")
                      .setEndpoint(SOCKET)
                      .setResourceName(Driver.SLOT)
                      .setOptions(SlotPlugin.options())
                      .build());
      registeredWith = now;
      log.info("registered with the kubelet: resource={}", Driver.SLOT);
    } finally {
      channel.shutdownNow();
    }
  }

  @Override
  public void close() {
    looking.cancel(false);
    UnixServer present = server;
    if (present != null) {
      present.close();
    }
  }
}
