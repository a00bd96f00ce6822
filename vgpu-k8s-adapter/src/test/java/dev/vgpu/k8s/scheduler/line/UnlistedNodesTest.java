package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.NodeSelectorRequirement;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Nodes that are full, so that kube-scheduler does not list them; it lists another one. Pods are
 * evicted only where the pod that waits may run.
 */
class UnlistedNodesTest {
  private static final Set<String> OTHER = Set.of("other");

  /** What keeps the pod away from the first node. */
  enum Rule {
    CORDON,
    TAINT,
    SELECTOR,
    AFFINITY
  }

  private static Node first(Rule rule) {
    NodeBuilder node = new NodeBuilder(Pods.node("node-0", 1));
    return switch (rule) {
      case CORDON -> node.withNewSpec().withUnschedulable(true).endSpec().build();
      case TAINT ->
          node.withNewSpec().addNewTaint("NoExecute", "maintenance", null, "yes").endSpec().build();
      default -> node.editMetadata().addToLabels("zone", "a").endMetadata().build();
    };
  }

  private static Node second() {
    return new NodeBuilder(Pods.node("node-1", 1))
        .editMetadata()
        .addToLabels("zone", "b")
        .endMetadata()
        .withNewSpec()
        .addNewTaint("PreferNoSchedule", "old", null, "yes")
        .addNewTaint("NoSchedule", "gpu", null, "yes")
        .endSpec()
        .build();
  }

  private static Pod online(Rule rule) {
    Pod pod = Pods.whole("online", 1, Map.of("vgpu.dev/class", "online"));
    PodBuilder more =
        new PodBuilder(pod)
            .editSpec()
            .addNewToleration(null, "gpu", "Exists", null, null)
            .endSpec();
    return switch (rule) {
      case SELECTOR -> more.editSpec().addToNodeSelector("zone", "b").endSpec().build();
      case AFFINITY ->
          more.editSpec()
              .withNewAffinity()
              .withNewNodeAffinity()
              .withNewRequiredDuringSchedulingIgnoredDuringExecution()
              .addNewNodeSelectorTerm()
              .withMatchExpressions(new NodeSelectorRequirement("zone", "In", List.of("b", "c")))
              .withMatchFields(
                  new NodeSelectorRequirement("metadata.name", "NotIn", List.of("node-0")))
              .endNodeSelectorTerm()
              .endRequiredDuringSchedulingIgnoredDuringExecution()
              .endNodeAffinity()
              .endAffinity()
              .endSpec()
              .build();
      default -> more.build();
    };
  }

  /** Both nodes are full of offline pods; that of the second one has run for longer. */
  private static SmallCluster full(List<Node> nodes) {
    SmallCluster cluster = new SmallCluster(nodes);
    for (String node : List.of("node-1", "node-0")) {
      String name = "batch-" + node;
      Pod pod =
          new PodBuilder(Pods.whole(name, 1, Map.of("vgpu.dev/class", "offline")))
              .editSpec()
              .addNewToleration(null, null, "Exists", null, null)
              .endSpec()
              .build();
      cluster.create(pod);
      assertThat(cluster.schedule("uid-" + name, Set.of(node))).isTrue();
      cluster.settle();
      assertThat(cluster.isBound("uid-" + name)).isTrue();
    }
    return cluster;
  }

  private static List<String> evicted(SmallCluster cluster) {
    List<String> names = new ArrayList<>();
    for (Action action : cluster.actions) {
      if (action instanceof Action.Evict evict) {
        evict.pods().forEach(pod -> names.add(pod.getMetadata().getName()));
      }
    }
    return names;
  }

  @ParameterizedTest
  @EnumSource(Rule.class)
  void nothingIsEvictedWhereThePodMayNotRun(Rule rule) {
    SmallCluster cluster = full(List.of(Pods.node("node-0", 1), second()));
    cluster.nodes(List.of(first(rule), second()));
    cluster.create(online(rule));
    assertThat(cluster.schedule("uid-online", OTHER)).isFalse();
    assertThat(evicted(cluster)).containsExactly("batch-node-1");
    cluster.settle();
    assertThat(cluster.pods.get("uid-online").getSpec().getNodeName()).isEqualTo("node-1");
  }

  /** The node changes while the pod waits; kube-scheduler does not ask about it meanwhile. */
  @Test
  void aCordonCountsForPodsThatWaitAlready() {
    SmallCluster cluster = full(List.of(Pods.node("node-0", 1), second()));
    cluster.create(online(Rule.CORDON));
    cluster.line.evictionRefused("uid-online", "a budget", 0);
    assertThat(cluster.schedule("uid-online", OTHER)).isFalse();
    assertThat(evicted(cluster)).isEmpty();
    cluster.nodes(List.of(first(Rule.CORDON), second()));
    cluster.nowS = 100;
    cluster.line.tick(cluster.nowS);
    cluster.collect();
    assertThat(evicted(cluster)).containsExactly("batch-node-1");
  }

  /** kube-scheduler lists the node once the evicted pod has ended, and not before. */
  @Test
  void aPlaceIsKeptAndNotToldUntilTheEvictedPodHasEnded() {
    SmallCluster cluster = full(List.of(Pods.node("node-0", 1), Pods.node("node-1", 1)));
    cluster.create(Pods.whole("online", 1, Map.of("vgpu.dev/class", "online")));
    for (int i = 0; i < 2; i++) {
      assertThat(cluster.schedule("uid-online", OTHER)).isFalse();
      assertThat(cluster.lastReason).contains("its place is on node-0", "have to end first");
      assertThat(evicted(cluster)).containsExactly("batch-node-0");
    }
    cluster.actions.clear();
    cluster.delete("uid-batch-node-0");
    assertThat(cluster.actions).as("it is woken").hasSize(1);
    assertThat(cluster.schedule("uid-online", Set.of("other", "node-0"))).isTrue();
    cluster.settle();
    assertThat(cluster.pods.get("uid-online").getSpec().getNodeName()).isEqualTo("node-0");
  }

  /** Another pod keeps it away, for example; only kube-scheduler knows. */
  @Test
  void aNodeThatIsNotListedAfterAnEvictionIsNotTriedAgain() {
    SmallCluster cluster = full(List.of(Pods.node("node-0", 1), Pods.node("node-1", 1)));
    cluster.delete("uid-batch-node-1");
    cluster.create(Pods.whole("long", 1, Map.of()));
    cluster.settle();
    cluster.create(Pods.whole("online", 1, Map.of("vgpu.dev/class", "online")));
    assertThat(cluster.schedule("uid-online", OTHER)).isFalse();
    assertThat(evicted(cluster)).containsExactly("batch-node-0");
    cluster.actions.clear();
    cluster.delete("uid-batch-node-0");
    assertThat(cluster.schedule("uid-online", OTHER)).as("not listed, though free").isFalse();
    cluster.create(Pods.whole("batch", 1, Map.of("vgpu.dev/class", "offline")));
    assertThat(cluster.schedule("uid-batch", Set.of("node-0"))).isTrue();
    cluster.bind("uid-batch");
    cluster.actions.clear();
    assertThat(cluster.schedule("uid-online", OTHER)).isFalse();
    assertThat(evicted(cluster)).isEmpty();
  }
}
