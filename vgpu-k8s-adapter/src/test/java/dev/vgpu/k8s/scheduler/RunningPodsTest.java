package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.k8s.names.Driver;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.Quantity;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** How pods that run are counted. */
class RunningPodsTest {
  /** The pod's annotation, and its container, are of that GPU still. */
  @Test
  void aPodStaysOnItsGpuWhileThatIsLostForAMoment() {
    Node all = Pods.node("node", 2);
    SmallCluster cluster = new SmallCluster(List.of(all));
    cluster.create(Pods.share("a", 60, Map.of()));
    cluster.settle();
    String gpu = cluster.gpus("uid-a").get(0);
    String other = gpu.equals("GPU-node-0") ? "GPU-node-1" : "GPU-node-0";
    cluster.nodes(List.of(with(all, other)));
    cluster.nodes(List.of(all));
    cluster.create(Pods.share("b", 60, Map.of()));
    cluster.settle();
    assertThat(cluster.gpus("uid-b")).containsExactly(other);
  }

  /** A node that has lost all its GPUs but these. */
  private static Node with(Node node, String... gpus) {
    Map<String, String> notes = new HashMap<>(node.getMetadata().getAnnotations());
    notes.put(
        Driver.GPUS,
        Stream.of(gpus)
            .map(gpu -> "{\"uuid\":\"" + gpu + "\",\"model\":\"A100\",\"memory\":\"40Gi\"}")
            .collect(Collectors.joining(",", "[", "]")));
    return new NodeBuilder(node).editMetadata().withAnnotations(notes).endMetadata().build();
  }

  @Test
  void aPodOnALostGpuTakesNoOthersRoom() {
    Node all = Pods.node("node", 2);
    SmallCluster cluster = new SmallCluster(List.of(all));
    cluster.create(Pods.share("a", 60, Map.of()));
    cluster.settle();
    String lost = cluster.gpus("uid-a").get(0);
    String other = lost.equals("GPU-node-0") ? "GPU-node-1" : "GPU-node-0";
    cluster.nodes(List.of(with(all, other)));
    cluster.create(Pods.share("b", 100, Map.of()));
    cluster.settle();
    assertThat(cluster.gpus("uid-b")).containsExactly(other);
    cluster.nodes(List.of(all));
    cluster.create(Pods.share("c", 40, Map.of()));
    cluster.settle();
    assertThat(cluster.gpus("uid-c")).as("beside a").containsExactly(lost);
    cluster.create(Pods.share("d", 10, Map.of()));
    cluster.settle();
    assertThat(cluster.isBound("uid-d")).isFalse();
  }

  @Test
  void aPodThatHasLostOneOfItsGpusKeepsTheOther() {
    Node all = Pods.node("node", 2);
    SmallCluster cluster = new SmallCluster(List.of(all));
    cluster.create(Pods.whole("a", 2, Map.of()));
    cluster.settle();
    cluster.nodes(List.of(with(all, "GPU-node-1")));
    cluster.create(Pods.share("b", 10, Map.of()));
    cluster.settle();
    assertThat(cluster.isBound("uid-b")).isFalse();
    cluster.nodes(List.of(all));
    cluster.settle();
    assertThat(cluster.isBound("uid-b")).isFalse();
    cluster.delete("uid-a");
    cluster.settle();
    assertThat(cluster.isBound("uid-b")).isTrue();
  }

  private static Pod runs(String name, String resource, String amount) {
    Pod pod = Pods.bound(Pods.whole(name, 1, Map.of()), "node", Map.of());
    pod.getSpec()
        .getContainers()
        .get(0)
        .getResources()
        .setRequests(Map.of(resource, new Quantity(amount)));
    return pod;
  }

  /** Whatever a pod says, the others are counted, and a new leader begins. */
  @Test
  void aPodThatCannotBeCountedHarmsNoOther() {
    List<Node> node = List.of(Pods.node("node", 3));
    PodLine line = new PodLine(Policies.OURS);
    List<Pod> pods =
        List.of(
            runs("negative", "memory", "-1"),
            runs("plain", "cpu", "1"),
            runs("huge", "cpu", "3000000"));
    line.begin(node, pods, 0);
    line.begin(node, List.of(), 0);
    pods.forEach(pod -> line.see(pod, 0));
    Answer one = line.filter(Pods.whole("a", 1, Map.of()), Set.of("node"), 1, 0);
    assertThat(one).isEqualTo(Answer.node("node"));
    Answer two = line.filter(Pods.whole("b", 1, Map.of()), Set.of("node"), 1, 0);
    assertThat(two.text()).as("of three GPUs, two are in use and one is given").contains("no room");
  }
}
