package dev.vgpu.k8s.node.dra;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.k8s.node.MockApi;
import dev.vgpu.k8s.node.health.GpuConditions;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** When the slice is written. */
class SlicePublisherTest {
  @TempDir Path directory;
  private MockApi mock;
  private KubernetesClient api;
  private GpuPool pool;
  private SlicePublisher publisher;

  @BeforeEach
  void open() {
    mock = new MockApi();
    api = mock.client();
    pool = GpuPool.open(GpuPoolOptions.builder().runDirectory(directory.resolve("run")).build());
    publisher = publisher(api, pool, false);
  }

  @AfterEach
  void close() {
    pool.close();
    api.close();
    mock.close();
  }

  private static SlicePublisher publisher(
      KubernetesClient api, GpuPool pool, boolean isConditional) {
    NodeDevices devices = new NodeDevices(pool, new GpuConditions(pool), "n");
    return new SlicePublisher(api, devices, "n", isConditional);
  }

  private ResourceSlice slice() {
    return api.resources(ResourceSlice.class).withName("n-vgpu.dev").get();
  }

  @Test
  void nodeThatIsNotThereIsNamed() {
    assertThatThrownBy(publisher::publish).hasMessageContaining("no such node: n");
  }

  @Test
  void onlyChangesAreWrittenWithTheNextGeneration() {
    api.resource(new NodeBuilder().withNewMetadata().withName("n").endMetadata().build()).create();
    publisher.publish();
    ResourceSlice first = slice();
    assertThat(first.getSpec().getPool().getGeneration()).isEqualTo(1);
    publisher.publish();
    assertThat(slice().getMetadata().getResourceVersion())
        .isEqualTo(first.getMetadata().getResourceVersion());

    first.getSpec().getDevices().remove(0); // another client changes it
    api.resource(first).update();
    publisher.publish();
    publisher.publish(); // every second call reads it back
    assertThat(slice().getSpec().getDevices()).hasSize(2);
    assertThat(slice().getSpec().getPool().getGeneration()).isEqualTo(2);
  }

  /** Somebody else wrote it in between: the next attempt reads it anew. */
  @Test
  void aConflictIsTriedAgain() {
    api.resource(new NodeBuilder().withNewMetadata().withName("n").endMetadata().build()).create();
    mock.conflicts.set(1);
    assertThatThrownBy(publisher::publish).isInstanceOf(KubernetesClientException.class);
    assertThat(slice()).isNull();
    publisher.publish();
    ResourceSlice first = slice();
    first.getSpec().getDevices().remove(0);
    api.resource(first).update();
    mock.conflicts.set(1);
    assertThatThrownBy(publisher::publish).isInstanceOf(KubernetesClientException.class);
    assertThat(slice().getSpec().getDevices()).hasSize(1);
    publisher.publish();
    assertThat(slice().getSpec().getDevices()).hasSize(2);
    assertThat(slice().getSpec().getPool().getGeneration()).isEqualTo(2);
  }

  /** An API server normalises quantities. */
  @Test
  void amountsInAnotherFormAreNoChange() {
    api.resource(new NodeBuilder().withNewMetadata().withName("n").endMetadata().build()).create();
    publisher.publish();
    String text = Serialization.asJson(slice());
    assertThat(text).contains("\"4096Mi\"");
    api.resource(Serialization.unmarshal(text.replace("4096Mi", "4Gi"), ResourceSlice.class))
        .update();
    String version = slice().getMetadata().getResourceVersion();
    publisher.publish();
    assertThat(slice().getMetadata().getResourceVersion()).isEqualTo(version);

    api.resource(
            Serialization.unmarshal(
                Serialization.asJson(slice()).replace("\"4Gi\"", "\"4G\""), ResourceSlice.class))
        .update();
    publisher.publish();
    publisher.publish(); // every second call reads it back
    assertThat(slice().getSpec().getPool().getGeneration()).isEqualTo(2);
  }

  @Test
  void devicesHaveConditionsForGangsOnlyIfTheNodeSaysSo() {
    api.resource(new NodeBuilder().withNewMetadata().withName("n").endMetadata().build()).create();
    publisher.publish();
    assertThat(slice().getSpec().getDevices().get(0).getBindingConditions()).isEmpty();
    SlicePublisher conditional = publisher(api, pool, true);
    conditional.publish();
    ResourceSlice written = slice();
    assertThat(written.getSpec().getDevices())
        .hasSize(2)
        .allMatch(one -> one.getBindingConditions().equals(List.of("vgpu.dev/gang-complete")))
        .allMatch(one -> one.getBindingFailureConditions().equals(List.of("vgpu.dev/gang-failed")));
    conditional.publish();
    assertThat(slice().getMetadata().getResourceVersion())
        .isEqualTo(written.getMetadata().getResourceVersion());
  }

  /** As an API server without the feature gates does. */
  @Test
  void conditionsThatTheApiServerDropsAreNotWrittenForever() {
    try (MockApi dropping = new MockApi(SlicePublisherTest::withoutConditions);
        KubernetesClient client = dropping.client()) {
      client
          .resource(new NodeBuilder().withNewMetadata().withName("n").endMetadata().build())
          .create();
      SlicePublisher conditional = publisher(client, pool, true);
      conditional.publish();
      conditional.publish();
      ResourceSlice slice = client.resources(ResourceSlice.class).withName("n-vgpu.dev").get();
      assertThat(slice.getSpec().getDevices()).hasSize(2);
      assertThat(slice.getSpec().getPool().getGeneration()).isEqualTo(1);
    }
  }

  private static String withoutConditions(String body) {
    return body.replaceAll("\"binding(Failure)?Conditions\":\\[[^\\]]*\\],?", "");
  }
}
