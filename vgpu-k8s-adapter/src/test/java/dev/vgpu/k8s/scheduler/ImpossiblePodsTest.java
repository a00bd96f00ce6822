package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Pods and gangs for which the cluster is too small, or has no GPU of the right model. */
class ImpossiblePodsTest {
  private static long bound(SmallCluster cluster, String prefix) {
    return cluster.pods.keySet().stream()
        .filter(uid -> uid.startsWith("uid-" + prefix) && cluster.isBound(uid))
        .count();
  }

  private static List<Node> withModel(List<Node> nodes, String model) {
    List<Node> changed = new ArrayList<>();
    for (Node node : nodes) {
      Map<String, String> notes = new HashMap<>(node.getMetadata().getAnnotations());
      notes.replaceAll((key, value) -> value.replace("A100", model));
      changed.add(
          new NodeBuilder(node).editMetadata().withAnnotations(notes).endMetadata().build());
    }
    return changed;
  }

  /** Three nodes of one GPU; the gang needs four. */
  @Test
  void aGangThatIsLargerThanTheClusterHoldsNobodyUp() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(3, 1));
    Pods.gangOfWholes("huge", 4).forEach(cluster::create);
    cluster.settle();
    assertThat(cluster.schedule("uid-huge-0")).isFalse();
    assertThat(cluster.lastReason)
        .contains("gang default/huge waits for other nodes")
        .contains("members=4 gpus=4", "the fleet has gpus=3");
    cluster.create(Pods.whole("first", 1, Map.of("vgpu.dev/class", "offline")));
    cluster.create(Pods.whole("second", 1, Map.of()));
    cluster.settle();
    assertThat(bound(cluster, "first") + bound(cluster, "second")).isEqualTo(2);
    Pods.gangOfWholes("large", 3).forEach(cluster::create);
    cluster.settle();
    assertThat(cluster.lastReason).contains("a place is held for it");
    cluster.create(Pods.whole("small", 1, Map.of()));
    assertThat(cluster.schedule("uid-small")).as("it would delay the large gang").isFalse();
    cluster.delete("uid-second");
    cluster.settle();
    assertThat(bound(cluster, "large")).isEqualTo(3);
  }

  @Test
  void aGangThatWasTooLargeStartsWhenNodesAreAdded() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(3, 1));
    Pods.gangOfWholes("huge", 4).forEach(cluster::create);
    cluster.settle();
    cluster.create(Pods.whole("small", 1, Map.of()));
    cluster.settle();
    assertThat(bound(cluster, "small")).isEqualTo(1);
    cluster.nodes(Pods.nodes(3, 2));
    assertThat(cluster.actions).as("they are woken").hasSize(4);
    cluster.settle();
    assertThat(bound(cluster, "huge")).isEqualTo(4);
  }

  /** kube-scheduler does not try them again by itself if it has seen the node already. */
  @Test
  void podsOfAModelThatNoNodeHasAreWokenWhenANodeHasIt() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 2));
    Map<String, String> notes = new HashMap<>(Pods.gang("ring", 2));
    notes.put("vgpu.dev/model", "H100");
    List<Pod> ring = List.of(Pods.share("ring-0", 100, notes), Pods.share("ring-1", 100, notes));
    ring.forEach(cluster::create);
    cluster.settle();
    assertThat(cluster.schedule("uid-ring-0")).isFalse();
    assertThat(cluster.lastReason).contains("fits no node", "H100", "A100");
    cluster.create(Pods.whole("small", 1, Map.of()));
    cluster.settle();
    assertThat(cluster.isBound("uid-small")).isTrue();
    cluster.delete("uid-small");
    cluster.nodes(withModel(Pods.nodes(2, 2), "H100"));
    assertThat(cluster.actions).as("they are woken").hasSize(2);
    cluster.settle();
    assertThat(bound(cluster, "ring")).isEqualTo(2);
  }

  @ParameterizedTest
  @ValueSource(strings = {"nvidia.com/use-gputype", "vgpu.dev/model"})
  void wholeGpusOfAModelThatIsNotThereAreNotReplacedByOthers(String annotation) {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 2));
    cluster.create(Pods.whole("picky", 1, Map.of(annotation, "H100")));
    assertThat(cluster.schedule("uid-picky")).isFalse();
    assertThat(cluster.lastReason).contains("models=[H100]", "the fleet has the models [A100]");
    cluster.nodes(withModel(Pods.nodes(2, 2), "NVIDIA H100 PCIe"));
    cluster.settle();
    assertThat(cluster.isBound("uid-picky")).isTrue();
  }

  /** The gang waits in line; then its nodes are replaced, and later they are back. */
  @Test
  void podsInLineWhoseNodesGoAreWokenWhenTheyAreBack() {
    SmallCluster cluster = new SmallCluster(Pods.plainNodes(2, 2));
    cluster.create(Pods.whole("runs", 2, Map.of()));
    cluster.settle();
    cluster.create(Pods.whole("pair", 2, Pods.gang("pair", 2)));
    cluster.create(Pods.whole("pair2", 2, Pods.gang("pair", 2)));
    cluster.settle();
    cluster.nodes(Pods.plainNodes(2, 1));
    assertThat(cluster.schedule("uid-pair")).isFalse();
    assertThat(cluster.lastReason).contains("fits no node", "gpus=2", "gpus=1");
    cluster.delete("uid-runs");
    cluster.nodes(Pods.plainNodes(2, 2));
    assertThat(cluster.actions).as("they are woken").hasSize(2);
    cluster.settle();
    assertThat(bound(cluster, "pair")).isEqualTo(2);
  }

  private static Pod ofTwoContainers(String name) {
    return new PodBuilder(Pods.whole(name, 1, Map.of()))
        .editSpec()
        .addNewInitContainer()
        .withName("early")
        .withResources(Pods.whole("", 2, Map.of()).getSpec().getContainers().get(0).getResources())
        .endInitContainer()
        .endSpec()
        .build();
  }

  /** The node role can enforce nothing there; NVIDIA's device plugin gives the GPUs. */
  @Test
  void gpusOfInitContainersAreOnNodesOfNvidiasPlugin() {
    SmallCluster cluster = new SmallCluster(List.of(Pods.node("node-0", 4)));
    cluster.create(ofTwoContainers("a"));
    cluster.create(ofTwoContainers("b"));
    cluster.settle();
    assertThat(cluster.lastReason).contains("ask for all GPUs in one container");
    cluster.nodes(List.of(Pods.node("node-0", 4), Pods.plainNode("node-1", 3)));
    cluster.settle();
    assertThat(cluster.isBound("uid-a")).isTrue();
    assertThat(cluster.gpus("uid-a")).hasSize(2);
    assertThat(cluster.isBound("uid-b")).as("one GPU is left there").isFalse();
    cluster.restart();
    cluster.settle();
    assertThat(cluster.isBound("uid-b")).as("also after a restart").isFalse();
    cluster.delete("uid-a");
    cluster.settle();
    assertThat(cluster.pods.get("uid-b").getSpec().getNodeName()).isEqualTo("node-1");
  }
}
