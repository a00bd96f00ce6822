package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.Quantity;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class PodLineTest {
  private static void createAll(SmallCluster cluster, List<Pod> pods) {
    pods.forEach(cluster::create);
  }

  private static long bound(SmallCluster cluster, String prefix) {
    return cluster.pods.keySet().stream()
        .filter(uid -> uid.startsWith("uid-" + prefix) && cluster.isBound(uid))
        .count();
  }

  @Test
  void aPodIsBoundWithOneWriteThatTellsItsGpu() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 2));
    cluster.create(Pods.share("a", 30, Map.of("vgpu.dev/class", "online")));
    cluster.settle();
    Pod pod = cluster.pods.get("uid-a");
    assertThat(cluster.writes).isEqualTo(1);
    assertThat(pod.getMetadata().getAnnotations().get("vgpu.dev/reservation"))
        .contains("\"main\":{\"gpu\":\"GPU-" + pod.getSpec().getNodeName())
        .contains("\"share\":30")
        .contains("\"memory\":\"1073741824\"")
        .contains("\"policy\":\"burst-share\"")
        .contains("\"class\":\"online\"");
  }

  @Test
  void askingAgainGivesTheSameAnswer() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(4, 1));
    Pod pod = Pods.whole("a", 1, Map.of());
    Set<String> all = Set.of("node-0", "node-1", "node-2", "node-3");
    Answer first = cluster.line.filter(pod, all, 1, 0);
    assertThat(cluster.line.filter(pod, all, 1, 0)).isEqualTo(first);
    for (int i = 0; i < 3; i++) {
      Answer other = cluster.line.filter(Pods.whole("b" + i, 1, Map.of()), all, 1, 0);
      assertThat(other.kind()).isEqualTo(Answer.Kind.NODE);
      assertThat(other).isNotEqualTo(first);
    }
    Answer late = cluster.line.filter(Pods.whole("late", 1, Map.of()), all, 1, 0);
    assertThat(late.kind()).isEqualTo(Answer.Kind.NONE);
    assertThat(late.text()).contains("no room now");
  }

  /** Two gangs whose members arrive alternately, and room for one. */
  @Test
  void gangsWhoseMembersComeInTurnDoNotBlockEachOther() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 1));
    List<Pod> first = Pods.gangOfWholes("first", 2);
    List<Pod> second = Pods.gangOfWholes("second", 2);
    for (int i = 0; i < 2; i++) {
      cluster.create(first.get(i));
      cluster.settle();
      cluster.create(second.get(i));
      cluster.settle();
      assertThat(bound(cluster, "")).isEqualTo(i * 2L);
    }
    assertThat(bound(cluster, "first")).isEqualTo(2);
    assertThat(cluster.writes).isEqualTo(4);
    first.forEach(pod -> cluster.delete(pod.getMetadata().getUid()));
    cluster.settle();
    assertThat(bound(cluster, "second")).isEqualTo(2);
  }

  @Test
  void ninetyNineOfAHundredHoldNothing() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(25, 4));
    cluster.create(Pods.whole("one", 1, Map.of()));
    cluster.settle();
    createAll(cluster, Pods.gangOfWholes("hundred", 100));
    cluster.settle();
    assertThat(bound(cluster, "hundred")).isZero();
    assertThat(cluster.lastReason).contains("a place is held for it");
    cluster.delete("uid-one");
    cluster.settle();
    assertThat(bound(cluster, "hundred")).isEqualTo(100);
  }

  @Test
  void sixteenHalvesFillEightGpus() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(1, 8));
    for (int i = 0; i < 16; i++) {
      cluster.create(Pods.share("half-" + i, 50, Pods.gang("halves", 16)));
    }
    cluster.create(Pods.share("more", 1, Map.of()));
    cluster.settle();
    assertThat(bound(cluster, "half")).isEqualTo(16);
    assertThat(bound(cluster, "more")).isZero();
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

  @Test
  void aGangWhoseMemberGoesBeforeItIsBoundHoldsNothing() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 1));
    createAll(cluster, Pods.gangOfWholes("pair", 2));
    cluster.schedule("uid-pair-0");
    cluster.schedule("uid-pair-1");
    cluster.delete("uid-pair-0");
    cluster.create(Pods.whole("other", 2, Map.of()));
    cluster.create(Pods.whole("one", 1, Map.of()));
    cluster.create(Pods.whole("two", 1, Map.of()));
    cluster.settle();
    assertThat(bound(cluster, "pair")).isZero();
    assertThat(bound(cluster, "one") + bound(cluster, "two")).isEqualTo(2);
  }

  @Test
  void aGangThatWasWrittenDownIsBoundAfterARestart() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 1));
    createAll(cluster, Pods.gangOfWholes("pair", 2));
    cluster.settleUntilWritten();
    cluster.restart();
    cluster.create(Pods.whole("thief", 1, Map.of()));
    assertThat(cluster.schedule("uid-thief")).isFalse();
    cluster.settle();
    assertThat(bound(cluster, "pair")).isEqualTo(2);
  }

  @Test
  void whatPodsClaimDoesNotCountWhereItContradictsTheRest() {
    List<Node> nodes = Pods.nodes(1, 1);
    SmallCluster cluster = new SmallCluster(nodes);
    Map<String, String> claim = new HashMap<>();
    claim.put(
        Place.ANNOTATION,
        "{\"node\":\"node-0\",\"gpus\":[\"GPU-x\"],\"gang\":\"uid-liar\",\"size\":1}");
    cluster.create(Pods.whole("liar", 1, claim));
    Pod honest = Pods.whole("honest", 1, Map.of());
    cluster.create(Pods.bound(honest, "node-0", Map.of()));
    Map<String, String> broken = Map.of(Place.ANNOTATION, "not json");
    cluster.create(Pods.whole("broken", 1, broken));
    cluster.restart();
    assertThat(cluster.schedule("uid-liar")).isFalse();
    assertThat(cluster.schedule("uid-broken")).isFalse();
  }

  @Test
  void offlinePodsGoForOnlineOnesBeforeThoseAreBound() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(1, 1));
    cluster.create(Pods.whole("batch", 1, Map.of("vgpu.dev/class", "offline")));
    cluster.settle();
    cluster.create(Pods.whole("online", 1, Map.of("vgpu.dev/class", "online")));
    assertThat(cluster.schedule("uid-online")).isTrue();
    assertThat(cluster.bind("uid-online")).isFalse();
    assertThat(cluster.actions).hasSize(1);
    cluster.settle();
    assertThat(cluster.pods).doesNotContainKey("uid-batch");
    assertThat(cluster.isBound("uid-online")).isTrue();
  }

  @Test
  void anEvictionThatIsRefusedLeavesAllAsItWas() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(1, 1));
    cluster.create(Pods.whole("batch", 1, Map.of("vgpu.dev/class", "offline")));
    cluster.settle();
    cluster.create(Pods.whole("online", 1, Map.of("vgpu.dev/class", "online")));
    assertThat(cluster.schedule("uid-online")).isTrue();
    Action.Evict evict = (Action.Evict) cluster.actions.remove(0);
    cluster.line.evictionRefused(evict.crew(), "a budget", cluster.nowS);
    cluster.collect();
    assertThat(cluster.binding.get("uid-online").join()).contains("a budget");
    cluster.bind("uid-online");
    cluster.settle();
    assertThat(cluster.isBound("uid-batch")).isTrue();
    assertThat(cluster.isBound("uid-online")).isFalse();
    cluster.nowS += 61;
    cluster.settle();
    assertThat(cluster.isBound("uid-online")).isTrue();
  }

  @Test
  void whatFitsNoNodeIsRefusedWithWhatWould() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 4));
    cluster.create(Pods.whole("big", 5, Map.of()));
    assertThat(cluster.schedule("uid-big")).isFalse();
    assertThat(cluster.lastReason).contains("refused").contains("gpus=5").contains("gpus=4");
  }

  @Test
  void aNodeThatTheClusterDoesNotAllowIsNotTaken() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(3, 1));
    cluster.create(Pods.whole("a", 1, Map.of()));
    assertThat(cluster.schedule("uid-a", Set.of("node-2"))).isTrue();
    cluster.settle();
    assertThat(cluster.pods.get("uid-a").getSpec().getNodeName()).isEqualTo("node-2");
  }

  /** Two pods of 40 processors and 200 GiB run on a node that now has 64 and 256 GiB. */
  @Test
  void podsThatRunHoldTheirGpusAlsoIfTheNodeHasTooFewProcessorsForThem() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(1, 2));
    for (String name : List.of("a", "b")) {
      Pod large =
          new PodBuilder(Pods.whole(name, 1, Map.of()))
              .editSpec()
              .editFirstContainer()
              .editResources()
              .addToRequests(Map.of("cpu", new Quantity("40"), "memory", new Quantity("200Gi")))
              .endResources()
              .endContainer()
              .endSpec()
              .build();
      cluster.create(Pods.bound(large, "node-0", Map.of()));
    }
    cluster.restart();
    cluster.create(Pods.whole("c", 1, Map.of()));
    assertThat(cluster.schedule("uid-c")).isFalse();
    assertThat(cluster.lastReason).contains("no room now");
    cluster.delete("uid-a");
    cluster.delete("uid-b");
    cluster.settle();
    cluster.create(Pods.whole("d", 1, Map.of()));
    cluster.settle();
    assertThat(bound(cluster, "c") + bound(cluster, "d")).isEqualTo(2);
  }

  @Test
  void podsThatRunCountAfterNodesHaveChanged() {
    List<Node> nodes = new ArrayList<>(Pods.nodes(1, 2));
    SmallCluster cluster = new SmallCluster(nodes);
    cluster.create(Pods.whole("a", 2, Map.of()));
    cluster.settle();
    nodes.add(Pods.node("node-new", 1));
    cluster.line.nodes(nodes, 1);
    Set<String> all = Set.of("node-0", "node-new");
    assertThat(cluster.line.filter(Pods.whole("b", 1, Map.of()), all, 1, 1))
        .isEqualTo(Answer.node("node-new"));
    assertThat(cluster.line.filter(Pods.whole("c", 1, Map.of()), all, 1, 1).kind())
        .isEqualTo(Answer.Kind.NONE);
  }
}
