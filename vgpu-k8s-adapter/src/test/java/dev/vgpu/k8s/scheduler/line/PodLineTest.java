package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.NodeBuilder;
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

  /** So that all of them can be tried before any goes. */
  @Test
  void thePodsOfADecisionAreEvictedTogether() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 1));
    for (String name : List.of("batch-0", "batch-1")) {
      Map<String, String> notes = new HashMap<>(Pods.gang("batch", 2));
      notes.put("vgpu.dev/class", "offline");
      cluster.create(Pods.whole(name, 1, notes));
    }
    cluster.settle();
    cluster.create(Pods.whole("online", 1, Map.of("vgpu.dev/class", "online")));
    assertThat(cluster.schedule("uid-online")).isTrue();
    assertThat(cluster.actions)
        .singleElement()
        .isInstanceOfSatisfying(
            Action.Evict.class,
            evict -> {
              assertThat(evict.crew()).isEqualTo("uid-online");
              assertThat(evict.pods())
                  .extracting(pod -> pod.getMetadata().getName())
                  .containsExactlyInAnyOrder("batch-0", "batch-1");
            });
  }

  @Test
  void podsOfASpreadGroupAreOnDifferentNodes() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(3, 4));
    for (int i = 0; i < 4; i++) {
      cluster.create(Pods.share("web-" + i, 10, Map.of("vgpu.dev/spread", "web")));
    }
    cluster.create(Pods.share("other", 10, Map.of("vgpu.dev/spread", "other")));
    cluster.settle();
    cluster.restart();
    cluster.settle();
    assertThat(bound(cluster, "web")).isEqualTo(3);
    assertThat(
            cluster.pods.values().stream()
                .filter(pod -> pod.getMetadata().getName().startsWith("web"))
                .map(pod -> pod.getSpec().getNodeName()))
        .doesNotHaveDuplicates();
    assertThat(cluster.isBound("uid-other")).isTrue();
    cluster.delete("uid-web-0");
    cluster.settle();
    assertThat(bound(cluster, "web")).isEqualTo(3);
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
    SmallCluster cluster = new SmallCluster(Pods.plainNodes(2, 4));
    cluster.create(Pods.whole("big", 5, Map.of()));
    assertThat(cluster.schedule("uid-big")).isFalse();
    assertThat(cluster.lastReason).contains("refused").contains("gpus=5").contains("gpus=4");
  }

  private static Pod gpushare(String name, int gibibytes) {
    return Pods.pod(name, Map.of(), Map.of("aliyun.com/gpu-mem", Integer.toString(gibibytes)));
  }

  /** Otherwise the pod would run, and nothing would be enforced. */
  @Test
  void aNodeWhoseDevicePluginDoesNotServeThePodIsNotTaken() {
    List<Node> nodes =
        List.of(
            Pods.node("a-slots", 1, Set.of(KubeletResource.SLOT)),
            Pods.node("gpushare", 1, Set.of(KubeletResource.SLOT, KubeletResource.GPUSHARE)));
    SmallCluster cluster = new SmallCluster(nodes);
    for (int i = 0; i < 3; i++) {
      cluster.create(gpushare("mem-" + i, 20));
    }
    cluster.settle();
    assertThat(bound(cluster, "mem")).isEqualTo(2);
    assertThat(cluster.pods.values())
        .allMatch(pod -> !"a-slots".equals(pod.getSpec().getNodeName()));
    cluster.create(Pods.pod("core", Map.of(), Map.of("tencent.com/vcuda-core", "100")));
    assertThat(cluster.schedule("uid-core")).isFalse();
    assertThat(cluster.lastReason)
        .contains("asked=[tencent.com/vcuda-core]", "vgpu.dev/slot", "--resources");
    cluster.create(Pods.share("slot", 50, Map.of()));
    cluster.settle();
    assertThat(cluster.pods.get("uid-slot").getSpec().getNodeName()).isEqualTo("a-slots");
  }

  /** The kubelet lists the devices later than the node role lists the GPUs. */
  @Test
  void aPodIsWokenWhenANodeServesIt() {
    Set<KubeletResource> slots = Set.of(KubeletResource.SLOT);
    SmallCluster cluster = new SmallCluster(List.of(Pods.node("node", 1, slots)));
    cluster.create(gpushare("first", 30));
    cluster.create(gpushare("deleted", 30));
    cluster.create(gpushare("second", 30));
    cluster.settle();
    assertThat(cluster.actions).isEmpty();
    cluster.delete("uid-deleted");
    cluster.nodes(List.of(Pods.node("node", 1, Set.of(KubeletResource.GPUSHARE))));
    assertThat(cluster.actions)
        .singleElement()
        .isInstanceOfSatisfying(
            Action.Write.class,
            write -> assertThat(write.pod().getMetadata().getName()).isEqualTo("first"));
    cluster.settle();
    assertThat(cluster.isBound("uid-first")).isTrue();
    cluster.delete("uid-first");
    assertThat(cluster.actions).hasSize(1);
  }

  /** A pod that no node serves must not hold up the first pod that has to wait for room. */
  @Test
  void aPodThatNoNodeServesIsNotInLine() {
    SmallCluster cluster =
        new SmallCluster(List.of(Pods.node("node", 1, Set.of(KubeletResource.SLOT))));
    cluster.create(Pods.share("runs", 50, Map.of()));
    cluster.settle();
    cluster.create(gpushare("unserved", 1));
    cluster.settle();
    cluster.create(Pods.share("large", 100, Map.of()));
    cluster.settle();
    assertThat(cluster.schedule("uid-large")).isFalse();
    assertThat(cluster.lastReason).contains("a place is held for it on 1 nodes");
  }

  /** All nodes that serve the pod are full, so that kube-scheduler lists only other nodes. */
  @Test
  void aPodWhoseNodesAreFullWaitsForThem() {
    List<Node> nodes =
        List.of(
            Pods.node("a-slots", 1, Set.of(KubeletResource.SLOT)),
            Pods.node("gpushare", 1, Set.of(KubeletResource.GPUSHARE)));
    SmallCluster cluster = new SmallCluster(nodes);
    cluster.create(gpushare("first", 30));
    cluster.settle();
    cluster.create(gpushare("second", 30));
    assertThat(cluster.schedule("uid-second", Set.of("a-slots"))).isFalse();
    cluster.delete("uid-first");
    assertThat(cluster.actions).as("it is woken").hasSize(1);
    cluster.settle();
    assertThat(cluster.pods.get("uid-second").getSpec().getNodeName()).isEqualTo("gpushare");
  }

  /** It was placed, and is not bound yet. */
  @Test
  void aPlaceOnANodeThatStopsServingIsGivenUp() {
    Set<KubeletResource> both = Set.of(KubeletResource.SLOT, KubeletResource.GPUSHARE);
    SmallCluster cluster = new SmallCluster(List.of(Pods.node("node", 1, both)));
    Map<String, String> gang = Pods.gang("pair", 2);
    cluster.create(Pods.pod("pair-0", gang, Map.of("aliyun.com/gpu-mem", "10")));
    cluster.create(Pods.pod("pair-1", gang, Map.of("aliyun.com/gpu-mem", "10")));
    assertThat(cluster.schedule("uid-pair-0")).as("it has to wait for the other one").isFalse();
    assertThat(cluster.schedule("uid-pair-1")).isTrue();
    List.copyOf(cluster.actions).forEach(cluster::act);
    cluster.nodes(List.of(Pods.node("node", 1, Set.of(KubeletResource.SLOT))));
    cluster.settle();
    assertThat(bound(cluster, "pair")).isZero();
    assertThat(cluster.schedule("uid-pair-0")).isFalse();
    assertThat(cluster.lastReason).contains("no node's device plugin serves it");
    cluster.nodes(List.of(Pods.node("node", 1, both)));
    cluster.settle();
    assertThat(bound(cluster, "pair")).isEqualTo(2);
  }

  /** Another system's device plugin offers a resource of the same name. */
  @Test
  void aResourceThatTheNodeRoleDoesNotListServesNoPod() {
    Node others =
        new NodeBuilder(Pods.node("node", 1, Set.of(KubeletResource.HAMI)))
            .editMetadata()
            .addToAnnotations(Driver.RESOURCES, "")
            .endMetadata()
            .build();
    SmallCluster cluster = new SmallCluster(List.of(others));
    cluster.create(
        Pods.pod("hami", Map.of(), Map.of("nvidia.com/gpu", "1", "nvidia.com/gpucores", "30")));
    assertThat(cluster.schedule("uid-hami")).isFalse();
    assertThat(cluster.lastReason).contains("no node's device plugin serves it");
  }

  /** NVIDIA's device plugin gives whole GPUs, and knows nothing of shares. */
  @Test
  void aNodeWithoutTheNodeRoleGivesOnlyWholeGpus() {
    SmallCluster cluster = new SmallCluster(List.of(Pods.plainNode("node", 1)));
    cluster.create(
        Pods.pod("share", Map.of(), Map.of("nvidia.com/gpu", "1", "nvidia.com/gpucores", "30")));
    assertThat(cluster.schedule("uid-share")).isFalse();
    cluster.create(Pods.whole("whole", 1, Map.of()));
    cluster.settle();
    assertThat(cluster.isBound("uid-whole")).isTrue();
    assertThat(cluster.isBound("uid-share")).isFalse();
  }

  /** The node role gives the container one virtual GPU on all of them. */
  @Test
  void severalGpusForOneContainerAreOnOneNode() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 4));
    cluster.create(Pods.whole("wholes", 3, Map.of()));
    cluster.create(
        Pods.pod(
            "slots",
            Map.of("vgpu.dev/memory", "1Gi", "vgpu.dev/share", "30"),
            Map.of("vgpu.dev/slot", "2")));
    cluster.create(
        Pods.pod(
            "hami",
            Map.of(),
            Map.of(
                "nvidia.com/gpu", "4", "nvidia.com/gpumem", "1000", "nvidia.com/gpucores", "30")));
    cluster.settle();
    for (String uid : List.of("uid-wholes", "uid-slots", "uid-hami")) {
      assertThat(cluster.isBound(uid)).as(uid).isTrue();
    }
    assertThat(cluster.reservation("uid-wholes")).contains("\"whole\":true");
    assertThat(cluster.reservation("uid-slots")).contains("\"gpus\":[", "\"share\":30");
    assertThat(cluster.gpus("uid-wholes")).doesNotHaveDuplicates().hasSize(3);
    assertThat(cluster.gpus("uid-slots")).doesNotHaveDuplicates().hasSize(2);
    assertThat(cluster.gpus("uid-hami")).doesNotHaveDuplicates().hasSize(4);
  }

  @Test
  void moreGpusThanAVirtualGpuHasWaitUntilANodeGivesWholeOnes() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 20));
    cluster.create(
        Pods.pod("slots", Map.of("vgpu.dev/memory", "1Gi"), Map.of("vgpu.dev/slot", "9")));
    cluster.create(Pods.whole("wholes", 9, Map.of()));
    for (String uid : List.of("uid-slots", "uid-wholes")) {
      assertThat(cluster.schedule(uid)).isFalse();
      assertThat(cluster.lastReason)
          .contains("at most 8 GPUs", "asked gpus=9", "a gang of pods with fewer GPUs each");
    }
    cluster.create(Pods.whole("one", 1, Map.of()));
    cluster.settle();
    assertThat(cluster.isBound("uid-one")).as("they hold nobody up").isTrue();

    cluster.nodes(List.of(Pods.node("node-0", 20), Pods.plainNode("node-1", 20)));
    assertThat(cluster.actions).as("the one that a node serves is woken").hasSize(1);
    cluster.settle();
    assertThat(cluster.isBound("uid-wholes")).isTrue();
    assertThat(cluster.isBound("uid-slots")).isFalse();
  }

  /** 13 percent each would be too much, and 12 percent of the memory less than was asked. */
  @Test
  void eightEighthsOfKaiFillAGpu() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(1, 1));
    for (int i = 0; i < 9; i++) {
      cluster.create(
          Pods.pod("kai-" + i, Map.of("gpu-fraction", "0.125"), Map.of("vgpu.dev/slot", "1")));
    }
    cluster.settle();
    assertThat(bound(cluster, "kai-")).isEqualTo(8);
    assertThat(cluster.pods.get("uid-kai-0").getMetadata().getAnnotations())
        .extractingByKey(Driver.RESERVATION)
        .asString()
        .contains("\"memory\":\"" + (40L << 30) / 8 + "\"");
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
    List<Node> nodes = new ArrayList<>(Pods.plainNodes(1, 2));
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
