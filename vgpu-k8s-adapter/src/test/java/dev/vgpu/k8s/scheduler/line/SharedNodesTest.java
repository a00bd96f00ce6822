package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Pods that must share the node of another pod. */
class SharedNodesTest {
  private static final Set<String> NODES = Set.of("node-0", "node-1");

  private static Map<String, String> beside(String pod) {
    return Map.of("vgpu.dev/same-node-as", pod);
  }

  private static Map<String, String> beside(String pod, String gang, int size) {
    Map<String, String> notes = new HashMap<>(Pods.gang(gang, size));
    notes.putAll(beside(pod));
    return notes;
  }

  private static String node(SmallCluster cluster, String pod) {
    return cluster.pods.get("uid-" + pod).getSpec().getNodeName();
  }

  @Test
  void aPodIsOnTheNodeOfTheOneThatItNames() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(3, 2));
    cluster.create(Pods.whole("filler", 2, Map.of()));
    cluster.create(Pods.share("db", 30, Map.of()));
    cluster.settle();
    for (int i = 0; i < 3; i++) {
      cluster.create(Pods.share("web-" + i, 50, beside("db")));
      cluster.settle();
      assertThat(node(cluster, "web-" + i)).isNotNull().isEqualTo(node(cluster, "db"));
    }
    cluster.create(Pods.share("more", 50, beside("db")));
    assertThat(cluster.schedule("uid-more")).isFalse();
    assertThat(cluster.lastReason)
        .contains("default/more must share the node of default/db")
        .contains("which is " + node(cluster, "db"))
        .contains("a place is held for it on 1 nodes");
  }

  @Test
  void thePodThatIsNamedMayComeLater() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 2));
    cluster.create(Pods.whole("filler", 1, Map.of()));
    cluster.settle();
    cluster.create(Pods.whole("web", 1, beside("db")));
    cluster.settle();
    assertThat(cluster.lastReason)
        .isEqualTo(
            "pod waits: default/web must share the node of default/db, which neither runs nor"
                + " waits");
    cluster.create(Pods.whole("db", 1, Map.of()));
    cluster.settle();
    assertThat(node(cluster, "db")).isNotNull().isNotEqualTo(node(cluster, "filler"));
    assertThat(node(cluster, "web")).isEqualTo(node(cluster, "db"));
  }

  /** The one that is named would fit alone; then there would be no place for the other one. */
  @Test
  void ifBothDoNotFitAPlaceIsHeldForBoth() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 2));
    cluster.create(Pods.whole("one", 1, Map.of()));
    cluster.settle();
    cluster.create(Pods.share("part", 50, Map.of("vgpu.dev/spread", "apart")));
    cluster.create(Pods.share("part-2", 50, Map.of("vgpu.dev/spread", "apart")));
    cluster.settle();
    cluster.create(Pods.whole("web", 1, beside("db")));
    assertThat(cluster.schedule("uid-web")).isFalse();
    cluster.create(Pods.whole("db", 1, Map.of()));
    assertThat(cluster.schedule("uid-db")).isFalse();
    assertThat(cluster.lastReason)
        .contains("a place is held for it on 1 nodes")
        .contains("it is placed together with default/web");
    cluster.create(Pods.whole("small", 1, Map.of()));
    cluster.settle();
    cluster.delete("uid-one");
    cluster.delete("uid-part");
    cluster.delete("uid-part-2");
    cluster.settle();
    assertThat(node(cluster, "db")).isNotNull();
    assertThat(node(cluster, "web")).isEqualTo(node(cluster, "db"));
  }

  @Test
  void membersOfAGangMayShareANode() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(3, 2));
    cluster.create(Pods.whole("filler", 1, Map.of()));
    cluster.settle();
    cluster.create(Pods.whole("ring-0", 1, Pods.gang("ring", 3)));
    cluster.create(Pods.whole("ring-1", 1, beside("ring-0", "ring", 3)));
    cluster.create(Pods.whole("ring-2", 2, Pods.gang("ring", 3)));
    cluster.settle();
    assertThat(node(cluster, "ring-0")).isNotNull().isEqualTo(node(cluster, "ring-1"));
    assertThat(node(cluster, "ring-2")).isNotNull();
  }

  @Test
  void aGangThatNeverComesTogetherHoldsNobodyUp() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 2));
    cluster.create(Pods.share("half-0", 10, beside("db", "half", 2)));
    cluster.settle();
    cluster.create(Pods.share("db", 10, Map.of()));
    cluster.settle();
    assertThat(cluster.isBound("uid-db")).isTrue();
  }

  /** Otherwise the other one could be placed elsewhere after a restart. */
  @Test
  void itIsBoundOnlyAfterTheOneThatItNames() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 2));
    cluster.create(Pods.share("web", 10, beside("db")));
    cluster.create(Pods.share("db", 10, Map.of()));
    assertThat(cluster.schedule("uid-web")).isFalse();
    assertThat(cluster.schedule("uid-db")).isTrue();
    assertThat(cluster.schedule("uid-web")).isTrue();
    assertThat(cluster.bind("uid-web")).isFalse();
    assertThat(cluster.bind("uid-db")).isTrue();
    assertThat(cluster.bind("uid-web")).isTrue();
    assertThat(node(cluster, "web")).isNotNull().isEqualTo(node(cluster, "db"));
  }

  @Test
  void aPlaceBesideAPodThatMovesIsGivenBack() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 2));
    cluster.create(Pods.share("web", 10, beside("db")));
    cluster.create(Pods.share("db", 10, Map.of()));
    assertThat(cluster.schedule("uid-web")).isFalse();
    Answer first = cluster.line.filter(cluster.pods.get("uid-db"), NODES, 1, 0);
    assertThat(cluster.schedule("uid-web")).isTrue();
    assertThat(cluster.lastReason).isEqualTo(first.text());
    String second = first.text().equals("node-0") ? "node-1" : "node-0";
    assertThat(cluster.schedule("uid-db", Set.of(second))).isTrue();
    assertThat(cluster.binding.get("uid-web").join()).contains("whose node it must share");
    cluster.bind("uid-web");
    cluster.settle();
    assertThat(node(cluster, "db")).isEqualTo(second);
    assertThat(node(cluster, "web")).isEqualTo(second);
  }

  @Test
  void aRestartForgetsNothingOfIt() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 2));
    cluster.create(Pods.share("web", 10, beside("db")));
    cluster.create(Pods.share("db", 10, Map.of()));
    cluster.schedule("uid-web");
    cluster.schedule("uid-db");
    // The place of the one is recorded, and that of the other is not.
    List.copyOf(cluster.actions).forEach(cluster::act);
    String first = cluster.lastReason;
    cluster.restart();
    assertThat(cluster.schedule("uid-web")).isFalse();
    assertThat(cluster.schedule("uid-db", Set.of(first.equals("node-0") ? "node-1" : "node-0")))
        .isTrue();
    cluster.settle();
    cluster.restart();
    cluster.create(Pods.share("late", 10, beside("web")));
    cluster.settle();
    assertThat(node(cluster, "db")).isNotNull().isNotEqualTo(first);
    assertThat(node(cluster, "web")).isEqualTo(node(cluster, "db"));
    assertThat(node(cluster, "late")).isEqualTo(node(cluster, "db"));
  }

  @Test
  void aPodWithoutGpusMayBeNamed() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 2));
    Pod plain = Pods.bound(Pods.pod("plain", Map.of(), Map.of()), "node-1", Map.of());
    cluster.line.see(plain, 0);
    cluster.create(Pods.share("web", 10, beside("plain")));
    cluster.settle();
    assertThat(node(cluster, "web")).isEqualTo("node-1");
  }

  /** A pod that runs does not follow; one that waits looks for the new one. */
  @Test
  void anotherPodOfTheNameCountsWhenTheFirstHasGone() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 1));
    cluster.create(Pods.whole("db", 1, Map.of()));
    cluster.settle();
    cluster.create(Pods.share("web", 50, beside("db")));
    cluster.settle();
    assertThat(cluster.isBound("uid-web")).isFalse();
    cluster.delete("uid-db");
    assertThat(cluster.schedule("uid-web")).isFalse();
    assertThat(cluster.lastReason).contains("which neither runs nor waits");
    Pod again = Pods.share("db", 50, Map.of());
    again.getMetadata().setUid("uid-db-again");
    cluster.create(again);
    cluster.settle();
    assertThat(node(cluster, "web"))
        .isNotNull()
        .isEqualTo(cluster.pods.get("uid-db-again").getSpec().getNodeName());
  }

  @Test
  void podsThatWaitForEachOtherAreRefused() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 2));
    cluster.create(Pods.share("a", 10, beside("b")));
    cluster.create(Pods.share("b", 10, beside("c")));
    cluster.create(Pods.share("c", 10, beside("a")));
    assertThat(cluster.schedule("uid-a")).isFalse();
    assertThat(cluster.schedule("uid-b")).isFalse();
    assertThat(cluster.schedule("uid-c")).isFalse();
    assertThat(cluster.lastReason)
        .isEqualTo(
            "refused: vgpu.dev/same-node-as: pods wait for each other: pod=default/c"
                + " asked=default/a");
    cluster.delete("uid-c");
    cluster.create(Pods.share("c", 10, Map.of()));
    cluster.settle();
    assertThat(node(cluster, "a")).isNotNull().isEqualTo(node(cluster, "c"));
  }

  @Test
  void gangsThatWaitForEachOtherAreRefused() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 4));
    cluster.create(Pods.share("a-0", 10, beside("b-0", "a", 2)));
    cluster.create(Pods.share("a-1", 10, Pods.gang("a", 2)));
    cluster.create(Pods.share("b-0", 10, Pods.gang("b", 2)));
    cluster.create(Pods.share("b-1", 10, beside("a-1", "b", 2)));
    for (String uid : List.of("uid-a-0", "uid-a-1", "uid-b-0", "uid-b-1")) {
      assertThat(cluster.schedule(uid)).isFalse();
    }
    assertThat(cluster.lastReason).contains("put all pods into one: pod=default/b-1");
  }
}
