package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import dev.vgpu.k8s.scheduler.claim.ClaimUse;
import dev.vgpu.request.MemorySize;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** kube-scheduler proposes pods of lower priority to evict. It knows nothing of single GPUs. */
class PreemptionTest {
  private static final Answer NODE_0 = Answer.node("node-0");

  private SmallCluster cluster = new SmallCluster(Pods.nodes(2, 2));

  private static Pod priority(int priority, Pod pod) {
    return new PodBuilder(pod).editSpec().withPriority(priority).endSpec().build();
  }

  private static Pod share(String name, int percent, int priority) {
    return priority(priority, Pods.share(name, percent, Map.of()));
  }

  /** Pods that run on a node. */
  private void run(String node, Pod... pods) {
    for (Pod pod : pods) {
      cluster.create(pod);
    }
    for (Pod pod : pods) {
      cluster.schedule(pod.getMetadata().getUid(), Set.of(node));
    }
    List.copyOf(cluster.actions).forEach(cluster::act);
    for (Pod pod : pods) {
      String uid = pod.getMetadata().getUid();
      assertThat(cluster.binding.containsKey(uid) || cluster.schedule(uid, Set.of(node))).isTrue();
    }
    for (Pod pod : pods) {
      assertThat(cluster.bind(pod.getMetadata().getUid())).isTrue();
      assertThat(cluster.isBound(pod.getMetadata().getUid())).isTrue();
    }
  }

  private static Candidate victims(String node, String... names) {
    return new Candidate(node, List.of(names).stream().map(name -> "uid-" + name).toList(), 0);
  }

  private Answer preempt(Pod pod, Candidate... candidates) {
    cluster.create(pod);
    int size = pod.getMetadata().getAnnotations().containsKey("vgpu.dev/gang-size") ? 2 : 1;
    Answer answer = cluster.line.preempt(pod, List.of(candidates), size, cluster.nowS);
    cluster.collect();
    return answer;
  }

  /** Nobody is evicted; the pod then leaves the line. */
  private void evictsNobody(Pod pod, Candidate... candidates) {
    waits(pod, candidates);
    cluster.delete(pod.getMetadata().getUid());
  }

  private void waits(Pod pod, Candidate... candidates) {
    assertThat(preempt(pod, candidates).kind()).isEqualTo(Answer.Kind.NONE);
    assertThat(cluster.actions).isEmpty();
  }

  @Test
  void aPodGetsTheRoomOfItsVictimsOnceTheyHaveEnded() {
    run("node-0", share("a", 60, 1), share("b", 60, 5));
    Pod high = share("high", 80, 9);
    assertThat(preempt(high, victims("node-0", "a"))).isEqualTo(NODE_0);
    assertThat(cluster.schedule("uid-high", Set.of("node-0"))).isTrue();
    assertThat(cluster.bind("uid-high")).as("its victim is there").isFalse();
    cluster.delete("uid-a");
    assertThat(cluster.bind("uid-high")).isTrue();
    assertThat(cluster.isBound("uid-high")).isTrue();
    assertThat(cluster.gpus("uid-high")).doesNotContainAnyElementsOf(cluster.gpus("uid-b"));
    cluster.check();
  }

  /** The victims leave 100 % of the node, and no more than 50 % of any GPU. */
  @Test
  void shareThatIsNotOnOneGpuIsNoRoom() {
    run("node-0", share("a", 50, 1), share("b", 50, 5), share("c", 50, 5), share("d", 50, 1));
    assertThat(cluster.gpus("uid-a")).isEqualTo(cluster.gpus("uid-b"));
    evictsNobody(share("high", 60, 9), victims("node-0", "a", "d"));
    assertThat(preempt(share("less", 50, 9), victims("node-0", "a", "d"))).isEqualTo(NODE_0);
  }

  @Test
  void memoryThatIsNotOnOneGpuIsNoRoom() {
    run("node-0", memory("a", "20Gi", 1), memory("b", "20Gi", 5));
    run("node-0", memory("c", "20Gi", 5), memory("d", "20Gi", 1));
    evictsNobody(memory("high", "21Gi", 9), victims("node-0", "a", "d"));
    assertThat(preempt(memory("less", "20Gi", 9), victims("node-0", "a", "d"))).isEqualTo(NODE_0);
  }

  private static Pod memory(String name, String memory, int priority) {
    Map<String, String> notes = Map.of("vgpu.dev/share", "10", "vgpu.dev/memory", memory);
    return priority(priority, Pods.pod(name, notes, Map.of("vgpu.dev/slot", "1")));
  }

  /** A question may be wrong, or anybody's. */
  @Test
  void nobodyIsEvictedWhoMayNotBe() {
    run("node-0", share("low", 100, 1), share("same", 100, 9));
    run("node-1", share("other", 100, 1));
    Pod high = Pods.whole("high", 1, Map.of());
    evictsNobody(priority(9, high), victims("node-0", "same"));
    evictsNobody(priority(9, high), victims("node-0", "low", "same"));
    evictsNobody(priority(9, high), victims("node-0", "unknown"));
    evictsNobody(priority(9, high), victims("node-0", "low", "unknown"));
    evictsNobody(priority(9, high), victims("node-0", "other"));
    evictsNobody(priority(9, high), victims("node-0"));
    evictsNobody(priority(9, high), victims("node-7", "low"));
    evictsNobody(priority(1, high), victims("node-0", "low"));
    evictsNobody(Pods.share("none", 100, Map.of()), victims("node-0", "low"));
    Pod never = priority(9, high);
    never.getSpec().setPreemptionPolicy("Never");
    evictsNobody(never, victims("node-0", "low"));
    assertThat(preempt(priority(9, high), victims("node-0", "low"))).isEqualTo(NODE_0);
  }

  @Test
  void aPodThatIsBeingBoundIsNotEvicted() {
    cluster.create(share("low", 100, 1));
    assertThat(cluster.schedule("uid-low", Set.of("node-0"))).isTrue();
    evictsNobody(share("high", 100, 9), victims("node-0", "low"));
  }

  @Test
  void aNodeThatDoesNotTakeThePodIsNoRoom() {
    run("node-0", share("low", 100, 1));
    Pod picky = share("high", 100, 9);
    picky.getSpec().setNodeSelector(Map.of("zone", "b"));
    evictsNobody(picky, victims("node-0", "low"));
  }

  @Test
  void anotherPodThatGetsNothingHereIsNoneOfItsBusiness() {
    Pod plain = priority(9, Pods.pod("plain", Map.of(), Map.of("nvidia.com/priority", "1")));
    assertThat(preempt(plain, victims("node-0", "any"))).isEqualTo(Answer.any());
  }

  /** The one that kube-scheduler would choose, of those where the pod fits. */
  @Test
  void theBestNodeIsChosen() {
    run("node-0", share("a", 100, 3), share("b", 100, 9));
    run("node-1", share("c", 60, 1), share("d", 40, 9), share("e", 100, 2));
    Pod high = share("high", 100, 9);
    Candidate futile = victims("node-1", "c");
    assertThat(preempt(high, victims("node-0", "a"), futile)).isEqualTo(NODE_0);
    cluster.delete("uid-high");
    cluster.restart();
    Answer lower = preempt(high, victims("node-0", "a"), victims("node-1", "e"));
    assertThat(lower).isEqualTo(Answer.node("node-1"));
    cluster.delete("uid-high");
    cluster.restart();
    Candidate guarded = new Candidate("node-1", List.of("uid-e"), 1);
    assertThat(preempt(high, guarded, victims("node-0", "a"))).isEqualTo(NODE_0);
  }

  @Test
  void nobodyElseTakesTheRoomOfTheVictims() {
    run("node-0", share("a", 60, 1), share("b", 60, 1));
    run("node-1", share("c", 100, 9), share("d", 100, 9));
    Pod high = priority(9, Pods.whole("high", 2, Map.of()));
    assertThat(preempt(high, victims("node-0", "a", "b"))).isEqualTo(NODE_0);
    cluster.create(share("waits", 50, 9));
    assertThat(cluster.schedule("uid-waits")).isFalse();
    cluster.delete("uid-b");
    assertThat(cluster.schedule("uid-waits")).isFalse();
    cluster.delete("uid-a");
    assertThat(cluster.schedule("uid-waits")).isFalse();
    assertThat(cluster.schedule("uid-high", Set.of("node-0"))).isTrue();
    assertThat(cluster.bind("uid-high")).isTrue();
    assertThat(cluster.isBound("uid-high")).isTrue();
  }

  /** Another extender has refused, for example. */
  @Test
  void victimsThatAreNotEvictedKeepTheirGpus() {
    run("node-0", share("a", 100, 1), share("b", 100, 9));
    run("node-1", share("c", 100, 9), share("d", 100, 9));
    assertThat(preempt(share("high", 100, 9), victims("node-0", "a"))).isEqualTo(NODE_0);
    cluster.nowS = Preemption.DUE_S - 1;
    cluster.line.tick(cluster.nowS);
    assertThat(cluster.schedule("uid-high", Set.of("node-0"))).isTrue();
    cluster.nowS = Preemption.DUE_S + 1;
    cluster.line.tick(cluster.nowS);
    assertThat(cluster.binding.get("uid-high").join()).contains("did not evict");
    assertThat(cluster.bind("uid-high")).isTrue();
    assertThat(cluster.schedule("uid-high", Set.of("node-0"))).isFalse();
    cluster.delete("uid-a");
    cluster.settle();
    assertThat(cluster.isBound("uid-high")).isTrue();
    cluster.check();
  }

  @Test
  void nobodyIsBoundInTheRoomOfVictimsThatStayAlsoIfThePodIsDeleted() {
    run("node-0", share("a", 100, 1), share("b", 100, 9));
    run("node-1", share("c", 100, 9), share("d", 100, 9));
    assertThat(preempt(share("high", 100, 9), victims("node-0", "a"))).isEqualTo(NODE_0);
    cluster.delete("uid-high");
    cluster.create(share("next", 100, 0));
    assertThat(cluster.schedule("uid-next")).isTrue();
    assertThat(cluster.bind("uid-next")).isFalse();
    cluster.nowS = Preemption.DUE_S + 1;
    cluster.line.tick(cluster.nowS);
    cluster.settle();
    assertThat(cluster.isBound("uid-next")).isFalse();
    assertThat(cluster.isBound("uid-a")).isTrue();
    cluster.check();
  }

  @Test
  void victimsThatTakeLongToEndAreWaitedFor() {
    run("node-0", share("a", 100, 1), share("b", 100, 9));
    run("node-1", share("c", 100, 9), share("d", 100, 9));
    assertThat(preempt(share("high", 100, 9), victims("node-0", "a"))).isEqualTo(NODE_0);
    Pod ending =
        new PodBuilder(cluster.pods.get("uid-a"))
            .editMetadata()
            .withDeletionTimestamp("2026-01-01T00:01:00Z")
            .endMetadata()
            .build();
    cluster.line.see(ending, 1);
    cluster.nowS = 100;
    cluster.line.tick(cluster.nowS);
    cluster.collect();
    assertThat(preempt(cluster.pods.get("uid-high"), victims("node-0", "a"))).isEqualTo(NODE_0);
    cluster.delete("uid-a");
    cluster.settle();
    assertThat(cluster.isBound("uid-high")).isTrue();
  }

  /** Its place is written, so it is kept. */
  @Test
  void aChangeOfTheNodesLeavesTheRoomToIt() {
    run("node-0", share("a", 100, 1), share("b", 100, 9));
    run("node-1", share("c", 100, 9), share("d", 100, 9));
    assertThat(preempt(share("high", 100, 9), victims("node-0", "a"))).isEqualTo(NODE_0);
    cluster.create(share("waits", 100, 9));
    assertThat(cluster.schedule("uid-waits")).isFalse();
    List.copyOf(cluster.actions).forEach(cluster::act);
    cluster.nodes(List.of(Pods.node("node-0", 2), Pods.node("node-1", 2), Pods.node("n", 0)));
    cluster.delete("uid-a");
    assertThat(cluster.schedule("uid-waits")).isFalse();
    assertThat(cluster.schedule("uid-high", Set.of("node-0"))).isTrue();
  }

  /** The slots are used up; the GPUs are not. */
  @Test
  void aPodWithRoomBesideItsVictimsNeedsThemGoneAllTheSame() {
    run("node-0", share("a", 10, 1));
    assertThat(preempt(share("high", 50, 9), victims("node-0", "a"))).isEqualTo(NODE_0);
    assertThat(cluster.schedule("uid-high", Set.of("node-0"))).isTrue();
    assertThat(cluster.bind("uid-high")).isFalse();
    cluster.delete("uid-a");
    assertThat(cluster.bind("uid-high")).isTrue();
  }

  private static Pod member(String name, int priority) {
    return priority(priority, Pods.whole(name, 1, Pods.gang("pair", 2)));
  }

  /** Each member alone would fit without its victim. */
  @Test
  void aGangThatDoesNotFitAsAWholeEvictsNobody() {
    run("node-0", share("a", 100, 1), share("b", 100, 9));
    run("node-1", share("c", 100, 1), share("d", 100, 9));
    waits(member("m-0", 9), victims("node-0", "a"));
    waits(member("m-1", 9), victims("node-0", "a"), victims("node-1", "c"));
    waits(member("m-0", 9), victims("node-0", "a"), victims("node-1", "c"));
  }

  @Test
  void aGangThatFitsGetsAllItsPlacesAtOnce() {
    run("node-0", share("a", 100, 1), share("b", 100, 9));
    run("node-1", share("c", 100, 9));
    cluster.create(member("m-0", 9));
    assertThat(cluster.schedule("uid-m-0", Set.of("node-1"))).isFalse();
    assertThat(preempt(member("m-1", 9), victims("node-0", "a"))).isEqualTo(NODE_0);
    cluster.settleUntilWritten();
    assertThat(cluster.isBound("uid-m-0")).isFalse();
    cluster.delete("uid-a");
    cluster.settle();
    assertThat(List.of("uid-m-0", "uid-m-1")).allMatch(cluster::isBound);
    cluster.check();
  }

  @Test
  void aGangIsEvictedAsAWholeOrNot() {
    run("node-0", member("m-0", 1), member("m-1", 1));
    Pod high = Pods.whole("high", 1, Map.of());
    evictsNobody(priority(9, high), victims("node-0", "m-0"));
    assertThat(preempt(priority(9, high), victims("node-0", "m-0", "m-1"))).isEqualTo(NODE_0);
  }

  /** That one came first, and would start later otherwise. */
  @Test
  void aNodeThatIsHeldForAnotherPodIsTakenWithAHigherPriorityOnly() {
    cluster = new SmallCluster(Pods.nodes(1, 1));
    run("node-0", share("a", 50, 1), share("b", 30, 9));
    cluster.create(share("first", 90, 7));
    assertThat(cluster.schedule("uid-first")).isFalse();
    assertThat(cluster.lastReason).contains("a place is held for it");
    evictsNobody(share("low", 60, 7), victims("node-0", "a"));
    assertThat(preempt(share("high", 60, 8), victims("node-0", "a"))).isEqualTo(NODE_0);
  }

  @Test
  void whatAClaimHasIsNoRoom() {
    run("node-0", share("a", 50, 1), share("x", 100, 9));
    String gpu = cluster.gpus("uid-a").get(0);
    cluster.line.claim(
        "uid-claim",
        List.of(
            new ClaimUse("claim", "node-0", Driver.device(gpu), 50, MemorySize.ofMebibytes(1024))),
        0);
    evictsNobody(share("high", 60, 9), victims("node-0", "a"));
    cluster.line.claim("uid-claim", List.of(), 0);
    assertThat(preempt(share("high", 60, 9), victims("node-0", "a"))).isEqualTo(NODE_0);
  }
}
