package dev.vgpu.k8s.node.dra;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.node.MockApi;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.health.MockedGpus;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.resource.v1.Device;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import io.fabric8.kubernetes.client.KubernetesClient;
import java.util.Comparator;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Slices of a node that has a GPU in MIG mode and one that is shared. */
class PublishedPartsTest {
  private static final int PARTS = MockedGpus.partsOfA100().size();

  private MockApi mock = new MockApi();
  private KubernetesClient api = mock.client();
  private final MockedGpus gpus = new MockedGpus("GPU-0", "GPU-1");

  PublishedPartsTest() {
    gpus.isDivided("GPU-0", MockedGpus.partsOfA100());
  }

  @AfterEach
  void close() {
    api.close();
    mock.close();
  }

  private SlicePublisher publisher() {
    return publisher(gpus);
  }

  private SlicePublisher publisher(MockedGpus its) {
    if (api.nodes().withName("n").get() == null) {
      api.resource(new NodeBuilder().withNewMetadata().withName("n").endMetadata().build())
          .create();
    }
    GpuConditions conditions = new GpuConditions(its.pool);
    return new SlicePublisher(api, new NodeDevices(its.pool, conditions, "n"), "n", false);
  }

  private List<ResourceSlice> slices() {
    return api.resources(ResourceSlice.class).list().getItems().stream()
        .sorted(Comparator.comparing(one -> one.getMetadata().getName()))
        .toList();
  }

  private List<Device> devices() {
    return slices().stream().flatMap(one -> one.getSpec().getDevices().stream()).toList();
  }

  private void isOnePool(long generation, int count) {
    assertThat(slices())
        .hasSize(count)
        .allMatch(one -> one.getSpec().getPool().getGeneration() == generation)
        .allMatch(one -> one.getSpec().getPool().getResourceSliceCount() == count);
  }

  @Test
  void slicesAreOnePoolAndWrittenOnce() {
    SlicePublisher publisher = publisher();
    publisher.publish();
    isOnePool(1, 3);
    assertThat(slices().get(0).getSpec().getDevices()).hasSize(1);
    assertThat(slices().get(1).getSpec().getSharedCounters()).hasSize(1);
    assertThat(slices().get(2).getSpec().getDevices()).hasSize(PARTS);
    List<ResourceSlice> before = slices();
    publisher.publish();
    publisher().publish();
    assertThat(slices()).isEqualTo(before);
  }

  @Test
  void ifSomebodyDeletesOrChangesOneAllGetANewGeneration() {
    SlicePublisher publisher = publisher();
    publisher.publish();
    assertThat(api.resources(ResourceSlice.class).withName("n-vgpu.dev-1").delete()).hasSize(1);
    publisher.publish();
    isOnePool(2, 3);
    ResourceSlice parts = slices().get(2);
    parts.getSpec().getDevices().remove(0);
    api.resource(parts).update();
    publisher.publish();
    isOnePool(3, 3);
    assertThat(devices()).hasSize(PARTS + 1);
  }

  /** Its MIG mode was switched off, and the role started anew. */
  @Test
  void slicesThatAreNotNeededAnyMoreAreEmpty() {
    publisher().publish();
    publisher(new MockedGpus("GPU-0", "GPU-1")).publish();
    isOnePool(2, 3);
    assertThat(devices()).map(Device::getName).containsExactly("gpu-0", "gpu-1");
    assertThat(slices()).allMatch(one -> one.getSpec().getSharedCounters().isEmpty());
  }

  private void anotherApi(UnaryOperator<String> bodies) {
    close();
    mock = new MockApi(bodies);
    api = mock.client();
  }

  private void hasNoParts() {
    SlicePublisher publisher = publisher();
    publisher.publish();
    assertThat(devices()).map(Device::getName).containsExactly("gpu-1");
    assertThat(slices())
        .map(one -> one.getSpec().getPool().getGeneration())
        .allMatch(one -> one.equals(slices().get(0).getSpec().getPool().getGeneration()));
    List<ResourceSlice> before = slices();
    publisher.publish();
    assertThat(slices()).isEqualTo(before);
  }

  /** As an API server without the feature gate does. That of 1.34 has null for no devices. */
  @ParameterizedTest
  @ValueSource(strings = {"[]", "null"})
  void withoutCountersThereAreNoParts(String nothing) {
    anotherApi(
        body ->
            body.replaceAll("\"sharedCounters\":\\[.*\\](,?)", "\"devices\":" + nothing + "$1")
                .replaceAll("\"consumesCounters\":\\[[^\\]]*\\],?", ""));
    hasNoParts();
    isOnePool(2, 2);
  }

  /** As one does that wants the counters beside the devices. */
  @Test
  void whereCountersAreRefusedThereAreNoParts() {
    mock.invalid = "sharedCounters\":[{";
    hasNoParts();
    isOnePool(2, 1);
  }
}
