package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What nodes say of their GPUs. One that says the impossible is left out, and no other one. */
class NodeGpusTest {
  private static void isLeftOut(Node odd) {
    assertThat(NodeGpus.of(odd)).isEmpty();
    SmallCluster cluster = new SmallCluster(List.of(odd, Pods.node("node-0", 1)));
    assertThat(cluster.line.filter(Pods.whole("a", 1, Map.of()), Set.of("node-0"), 1, 0).text())
        .isEqualTo("node-0");
  }

  @ParameterizedTest
  @ValueSource(strings = {"-1", "65", "2000000000", "99999999999", "", "many"})
  void aNodeThatCountsImpossiblyManyGpusIsLeftOut(String count) {
    isLeftOut(
        new NodeBuilder(Pods.plainNode("odd", 1))
            .editMetadata()
            .addToLabels("nvidia.com/gpu.count", count)
            .endMetadata()
            .build());
  }

  @Test
  void asManyGpusAsANodeMayHaveCount() {
    Node large = Pods.plainNode("large", NodeSpec.MOST_GPUS);
    assertThat(NodeGpus.of(large).orElseThrow().ids()).hasSize(NodeSpec.MOST_GPUS);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "[",
        "[{}]",
        "[{\"uuid\":\"GPU-1\"}]",
        "[{\"uuid\":\"GPU-1\",\"memory\":\"1e999999999\"}]",
        "[{\"uuid\":\"GPU-1\",\"memory\":\"-8Gi\"}]",
        "[{\"uuid\":\"GPU-1\",\"memory\":\"8Gi\"},{\"uuid\":\"GPU-1\",\"memory\":\"8Gi\"}]",
        "[{\"uuid\":\"GPU-1\",\"memory\":\"8Gi\"},{\"uuid\":\"GPU-2\",\"memory\":\"9Gi\"}]",
      })
  void aNodeWhoseListCannotBeReadIsLeftOut(String list) {
    isLeftOut(
        new NodeBuilder(Pods.node("odd", 1))
            .editMetadata()
            .addToAnnotations(Driver.GPUS, list)
            .endMetadata()
            .build());
  }
}
