package dev.vgpu.k8s.node.slot;

import dev.vgpu.k8s.Driver;
import dev.vgpu.k8s.node.socket.UnixChannel;
import dev.vgpu.k8s.node.socket.UnixServer;
import dev.vgpu.k8s.proto.podresources.ContainerDevices;
import dev.vgpu.k8s.proto.podresources.ContainerResources;
import dev.vgpu.k8s.proto.podresources.ListPodResourcesRequest;
import dev.vgpu.k8s.proto.podresources.PodResources;
import dev.vgpu.k8s.proto.podresources.PodResourcesListerGrpc;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Which container has what, as the kubelet says. Safe for use by several threads. */
public final class SlotOwners implements AutoCloseable {
  private static final long TIMEOUT_SECONDS = 10;
  private static final int MOST_BYTES = 16 << 20; // as many as the kubelet's own clients take

  private final ManagedChannel channel;

  /**
   * Asks the kubelet.
   *
   * @param socket of its pod resources service
   * @param threads moves the bytes
   */
  public SlotOwners(Path socket, UnixServer.Threads threads) {
    this.channel = UnixChannel.to(socket, threads);
  }

  /**
   * A container that has a slot.
   *
   * @param namespace its pod's
   * @param pod its pod's name
   * @param container its name
   * @param slot the slot's id
   */
  record Owner(String namespace, String pod, String container, String slot) {}

  /**
   * {@return what all pods of the node have}
   *
   * @throws io.grpc.StatusRuntimeException if the kubelet does not answer
   */
  public List<PodResources> pods() {
    return PodResourcesListerGrpc.newBlockingStub(channel)
        .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS)
        .withMaxInboundMessageSize(MOST_BYTES)
        .list(ListPodResourcesRequest.getDefaultInstance())
        .getPodResourcesList();
  }

  /** The owners of all slots. */
  List<Owner> owners() {
    List<Owner> owners = new ArrayList<>();
    for (PodResources pod : pods()) {
      for (ContainerResources container : pod.getContainersList()) {
        for (ContainerDevices devices : container.getDevicesList()) {
          if (devices.getResourceName().equals(Driver.SLOT)) {
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
