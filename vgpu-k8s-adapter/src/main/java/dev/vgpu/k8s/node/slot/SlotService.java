package dev.vgpu.k8s.node.slot;

import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.node.socket.UnixChannel;
import dev.vgpu.k8s.node.socket.UnixServer;
import dev.vgpu.k8s.proto.deviceplugin.Empty;
import dev.vgpu.k8s.proto.deviceplugin.RegisterRequest;
import dev.vgpu.k8s.proto.deviceplugin.RegistrationGrpc;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The socket of one resource, and its registration with the kubelet. Confined to the timer's local
 * thread, except {@link #close}, {@link #tell} and {@link #reconcile}.
 */
final class SlotService implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SlotService.class);
  private static final long TIMEOUT_SECONDS = 10;

  private final Path directory;
  private final UnixServer.Threads threads;
  private final KubeletResource resource;
  private final SlotPlugin plugin;
  private volatile @Nullable UnixServer server;
  private @Nullable Object registeredWith;

  SlotService(
      Path directory, UnixServer.Threads threads, KubeletResource resource, SlotPlugin plugin) {
    this.directory = directory;
    this.threads = threads;
    this.resource = resource;
    this.plugin = plugin;
  }

  /**
   * Tells the kubelet the health of the slots, if it has changed. Blocks as the GPUs' driver does.
   */
  void tell() {
    plugin.tell();
  }

  /** Gives back what no container has any more. On the thread that asks the API server. */
  void reconcile() throws IOException {
    plugin.reconcile();
  }

  /** Registers, unless that is done. */
  void register() throws IOException {
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
    close();
    String socket = resource.socket();
    server = UnixServer.open(directory.resolve(socket), threads, plugin);
    ManagedChannel channel = UnixChannel.to(kubelet, threads);
    try {
      Empty ignored =
          RegistrationGrpc.newBlockingStub(channel)
              .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS)
              .register(
                  RegisterRequest.newBuilder()
                      .setVersion("v1beta1")
                      .setEndpoint(socket)
                      .setResourceName(resource.resource())
                      .setOptions(SlotPlugin.options())
                      .build());
      registeredWith = now;
      log.info("registered with the kubelet: resource={}", resource.resource());
    } finally {
      channel.shutdownNow();
    }
  }

  @Override
  public void close() {
    UnixServer present = server;
    if (present != null) {
      plugin.end();
      present.close();
    }
  }
}
