package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.Quantity;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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

  /** Its owner changes what the manifest says. The reservation and the place stay. */
  private static void edit(SmallCluster cluster, String uid, String name, String text) {
    Pod edited =
        new PodBuilder(cluster.pods.get(uid))
            .editMetadata()
            .addToAnnotations("vgpu.dev/" + name, text)
            .endMetadata()
            .build();
    cluster.pods.put(uid, edited);
  }

  /** The node's containers keep what was reserved for them, whatever the pod says now. */
  @ParameterizedTest
  @CsvSource({
    "share, 10",
    "share, 90",
    "share, many",
    "memory, 1Gi",
    "memory, 39Gi",
    "model, H100",
    "policy, best-effort",
    "class, offline",
    "class, none"
  })
  void whatWasReservedForAPodCountsAfterARestart(String name, String text) {
    SmallCluster cluster = new SmallCluster(List.of(Pods.node("node", 1)));
    Map<String, String> notes = Map.of("vgpu.dev/share", "60", "vgpu.dev/memory", "30Gi");
    cluster.create(Pods.pod("a", notes, Map.of("vgpu.dev/slot", "1")));
    cluster.settle();
    edit(cluster, "uid-a", name, text);
    cluster.restart();
    cluster.create(Pods.share("large", 41, Map.of("vgpu.dev/class", "online")));
    assertThat(cluster.schedule("uid-large")).isFalse();
    assertThat(cluster.actions).noneMatch(Action.Evict.class::isInstance);
    cluster.delete("uid-large");
    Map<String, String> much = Map.of("vgpu.dev/share", "1", "vgpu.dev/memory", "11Gi");
    cluster.create(Pods.pod("much", much, Map.of("vgpu.dev/slot", "1")));
    assertThat(cluster.schedule("uid-much")).isFalse();
    cluster.delete("uid-much");
    cluster.create(Pods.share("fits", 40, Map.of()));
    assertThat(cluster.schedule("uid-fits")).isTrue();
  }

  @ParameterizedTest
  @CsvSource({"class, online", "share, 0", "model, H100"})
  void aPodCannotWriteItselfOutOfReachOfAnEviction(String name, String text) {
    SmallCluster cluster = new SmallCluster(List.of(Pods.node("node", 1)));
    cluster.create(Pods.share("batch", 60, Map.of("vgpu.dev/class", "offline")));
    cluster.settle();
    edit(cluster, "uid-batch", name, text);
    cluster.restart();
    cluster.create(Pods.whole("urgent", 1, Map.of("vgpu.dev/class", "online")));
    cluster.schedule("uid-urgent");
    assertThat(cluster.actions)
        .filteredOn(Action.Evict.class::isInstance)
        .singleElement()
        .satisfies(one -> assertThat(((Action.Evict) one).pods()).hasSize(1));
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
    line.begin(node, pods, Map.of(), 0);
    line.begin(node, List.of(), Map.of(), 0);
    pods.forEach(pod -> line.see(pod, 0));
    Answer one = line.filter(Pods.whole("a", 1, Map.of()), Set.of("node"), 1, 0);
    assertThat(one).isEqualTo(Answer.node("node"));
    Answer two = line.filter(Pods.whole("b", 1, Map.of()), Set.of("node"), 1, 0);
    assertThat(two.text()).as("of three GPUs, two are in use and one is given").contains("no room");
  }

  private static Pod ending(Pod pod) {
    return new PodBuilder(pod)
        .editMetadata()
        .withDeletionTimestamp("2026-01-01T00:00:00Z")
        .endMetadata()
        .build();
  }

  /** A pod of the earlier gang is about to end, on a node that was away for a moment. */
  @Test
  void aPodOfAnEarlierGangIsNoneOfALaterOneOfItsName() {
    List<Node> nodes = Pods.nodes(2, 1);
    SmallCluster cluster = new SmallCluster(nodes);
    Pods.gangOfWholes("ring", 2).forEach(cluster::create);
    cluster.settle();
    List.copyOf(cluster.pods.values())
        .forEach(
            pod -> {
              cluster.create(ending(pod));
              cluster.line.see(ending(pod), 0);
            });
    String away = cluster.pods.get("uid-ring-0").getSpec().getNodeName();
    cluster.nodes(nodes.stream().filter(one -> !one.getMetadata().getName().equals(away)).toList());
    for (String name : List.of("later-0", "later-1")) {
      cluster.create(Pods.whole(name, 1, Pods.gang("ring", 2)));
      assertThat(cluster.schedule("uid-" + name)).isFalse();
    }
    cluster.nodes(nodes);
    cluster.delete("uid-ring-1");
    cluster.settle();
    assertThat(cluster.isBound("uid-later-0")).as("one of the two GPUs is in use").isFalse();
    cluster.delete("uid-ring-0");
    cluster.settle();
    assertThat(cluster.isBound("uid-later-0")).isTrue();
    assertThat(cluster.isBound("uid-later-1")).isTrue();
  }
}
