package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** How long a gang waits that needs many GPUs at once. */
class LargeGangTest {
  private static void createAll(SmallCluster cluster, List<Pod> pods) {
    pods.forEach(cluster::create);
  }

  private static long bound(SmallCluster cluster, String prefix) {
    return cluster.pods.keySet().stream()
        .filter(uid -> uid.startsWith("uid-" + prefix) && cluster.isBound(uid))
        .count();
  }

  /** No run time is known, and small pods keep arriving. */
  @Test
  void aStreamOfSmallPodsDoesNotDelayALargeGang() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(4, 2));
    for (int i = 0; i < 8; i++) {
      cluster.create(Pods.whole("old-" + i, 1, Map.of()));
    }
    cluster.settle();
    createAll(cluster, Pods.gangOfWholes("large", 8));
    cluster.settle();
    for (int i = 0; i < 8; i++) {
      cluster.nowS++;
      cluster.create(Pods.whole("small-" + i, 1, Map.of()));
      cluster.settle();
      cluster.delete("uid-old-" + i);
      cluster.settle();
    }
    assertThat(bound(cluster, "small")).isZero();
    assertThat(bound(cluster, "large")).isEqualTo(8);
  }

  /** Each node that joins rebuilds the fleet, and has room for another small pod. */
  @Test
  void nodesThatJoinDoNotDelayIt() {
    List<Node> nodes = new ArrayList<>(Pods.nodes(4, 2));
    SmallCluster cluster = new SmallCluster(nodes);
    for (int i = 0; i < 8; i++) {
      cluster.create(Pods.whole("old-" + i, 1, Map.of()));
    }
    cluster.settle();
    createAll(cluster, Pods.gangOfWholes("large", 8));
    cluster.settle();
    for (int i = 0; i < 8; i++) {
      cluster.nowS++;
      nodes.add(Pods.node("a-new-" + i, 1));
      cluster.nodes(List.copyOf(nodes));
      cluster.create(Pods.whole("small-" + 2 * i, 1, Map.of()));
      cluster.create(Pods.whole("small-" + (2 * i + 1), 1, Map.of()));
      cluster.settle();
      // The last one joins when the gang needs only one more GPU.
      assertThat(bound(cluster, "small")).as("on the new nodes").isEqualTo(Math.min(i + 1, 7));
      cluster.delete("uid-old-" + i);
      cluster.settle();
    }
    assertThat(bound(cluster, "large")).isEqualTo(8);
  }

  /** It waits anew, rather than for ever. */
  @Test
  void aNodeOfItsPlaceThatGoesIsReplaced() {
    List<Node> nodes = new ArrayList<>(Pods.nodes(2, 1));
    SmallCluster cluster = new SmallCluster(nodes);
    cluster.create(Pods.whole("old", 1, Map.of()));
    cluster.settle();
    createAll(cluster, Pods.gangOfWholes("pair", 2));
    cluster.settle();
    cluster.nodes(List.of(Pods.node("node-0", 1), Pods.node("node-2", 1)));
    cluster.settle();
    cluster.delete("uid-old");
    cluster.create(Pods.whole("late", 1, Map.of()));
    cluster.settle();
    assertThat(bound(cluster, "pair")).isEqualTo(2);
    assertThat(cluster.isBound("uid-late")).isFalse();
  }

  private static Pod lasting(String name, int gpus, long seconds) {
    return new PodBuilder(Pods.whole(name, gpus, Map.of()))
        .editSpec()
        .withActiveDeadlineSeconds(seconds)
        .endSpec()
        .build();
  }

  /** A pod that runs for 100 s has 50 s left after 50 s. */
  @Test
  void podsKeepTheirExpectedEndWhenNodesChange() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(1, 2));
    cluster.create(lasting("old", 1, 100));
    cluster.settle();
    cluster.nowS = 50;
    cluster.nodes(List.of(Pods.node("node-0", 2), Pods.node("other", 1)));
    cluster.create(lasting("large", 2, 100));
    cluster.settle();
    cluster.create(lasting("longer", 1, 60));
    assertThat(cluster.schedule("uid-longer", Set.of("node-0"))).isFalse();
    cluster.create(lasting("shorter", 1, 40));
    assertThat(cluster.schedule("uid-shorter", Set.of("node-0"))).isTrue();
  }
}
