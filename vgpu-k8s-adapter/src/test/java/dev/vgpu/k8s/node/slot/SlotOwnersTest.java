package dev.vgpu.k8s.node.slot;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.k8s.node.socket.UnixServer;
import dev.vgpu.k8s.proto.podresources.ListPodResourcesRequest;
import dev.vgpu.k8s.proto.podresources.ListPodResourcesResponse;
import dev.vgpu.k8s.proto.podresources.PodResources;
import dev.vgpu.k8s.proto.podresources.PodResourcesListerGrpc;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** The kubelet's list, over a real socket. */
class SlotOwnersTest {
  private static final class Kubelet extends PodResourcesListerGrpc.PodResourcesListerImplBase {
    @Override
    public void list(
        ListPodResourcesRequest request, StreamObserver<ListPodResourcesResponse> answers) {
      answers.onNext(
          ListPodResourcesResponse.newBuilder()
              .addPodResources(PodResources.newBuilder().setName("a"))
              .build());
      answers.onCompleted();
    }
  }

  /** gRPC waits up to two minutes between its own attempts, and containers wait to start. */
  @Test
  void aKubeletThatIsBackIsAskedAtOnce() throws Exception {
    Path directory = Files.createTempDirectory(Path.of("/tmp"), "vgpu-k");
    Path socket = directory.resolve("pr.sock");
    try (UnixServer.Threads threads = UnixServer.Threads.open(2);
        SlotOwners owners = new SlotOwners(socket, threads)) {
      for (int i = 0; i < 5; i++) {
        assertThatThrownBy(owners::pods).isInstanceOf(StatusRuntimeException.class);
      }
      try (UnixServer kubelet = UnixServer.open(socket, threads, new Kubelet())) {
        assertThat(kubelet.isThere()).isTrue();
        assertThat(owners.pods()).hasSize(1);
      }
      assertThatThrownBy(owners::pods).isInstanceOf(StatusRuntimeException.class);
      try (UnixServer kubelet = UnixServer.open(socket, threads, new Kubelet())) {
        assertThat(kubelet.isThere()).isTrue();
        assertThat(owners.pods()).hasSize(1);
      }
    } finally {
      Files.delete(directory);
    }
  }
}
