package dev.vgpu.k8s.node.slot;

import dev.vgpu.k8s.node.socket.UnixChannel;
import dev.vgpu.k8s.node.socket.UnixServer;
import dev.vgpu.k8s.proto.podresources.ContainerDevices;
import dev.vgpu.k8s.proto.podresources.ContainerResources;
import dev.vgpu.k8s.proto.podresources.ListPodResourcesRequest;
import dev.vgpu.k8s.proto.podresources.PodResources;
import dev.vgpu.k8s.proto.podresources.PodResourcesListerGrpc;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Asks the kubelet which container has which slot. Safe for use by several threads. */
public final class SlotOwners implements AutoCloseable {
  private static final long TIMEOUT_SECONDS = 10;
  private static final int MOST_BYTES = 16 << 20; // the limit of the kubelet's own clients

  private final Path socket;
  private final UnixServer.Threads threads;
  private volatile ManagedChannel channel;

  /**
   * Creates a client of the kubelet's pod resources service.
   *
   * @param socket the socket of that service
   * @param threads moves the bytes
   */
  public SlotOwners(Path socket, UnixServer.Threads threads) {
    this.socket = socket;
    this.threads = threads;
    this.channel = UnixChannel.to(socket, threads);
  }

  /**
   * A container that has a slot, or another device.
   *
   * @param namespace its pod's namespace
   * @param pod its pod's name
   * @param container its name
   * @param slot the device's id
   */
  record Owner(String namespace, String pod, String container, String slot) {}

  /**
   * {@return the resources of all pods of the node}
   *
   * @throws io.grpc.StatusRuntimeException if the kubelet does not answer
   */
  public List<PodResources> pods() {
    ManagedChannel present = channel;
    try {
      return pods(present);
    } catch (StatusRuntimeException e) {
      if (e.getStatus().getCode() != Status.Code.UNAVAILABLE) {
        throw e;
      }
      // The kubelet may be back, and gRPC waits ever longer before it connects again.
      return pods(another(present));
    }
  }

  /** {@return a new connection in place of a broken one, or the one that took its place already} */
  private synchronized ManagedChannel another(ManagedChannel broken) {
    if (channel == broken) {
      broken.shutdownNow();
      channel = UnixChannel.to(socket, threads);
    }
    return channel;
  }

  private static List<PodResources> pods(ManagedChannel channel) {
    return PodResourcesListerGrpc.newBlockingStub(channel)
        .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS)
        .withMaxInboundMessageSize(MOST_BYTES)
        .list(ListPodResourcesRequest.getDefaultInstance())
        .getPodResourcesList();
  }

  /** The owners of all devices of a resource. */
  List<Owner> owners(String resource) {
    List<Owner> owners = new ArrayList<>();
    for (PodResources pod : pods()) {
      for (ContainerResources container : pod.getContainersList()) {
        for (ContainerDevices devices : container.getDevicesList()) {
          if (devices.getResourceName().equals(resource)) {
            devices
                .getDeviceIdsList()
                .forEach(
                    slot ->
                        owners.add(
                            new Owner(
                                pod.getNamespace(), pod.getName(), container.getName(), slot)));
          }
        }
      }
    }
    return owners;
  }

  @Override
  public void close() {
    channel.shutdownNow();
  }
}
