package dev.vgpu.k8s.scheduler.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.scheduler.Pods;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Pods with claims, beside the oldest ones that wait for devices. */
class ClaimReservationTest {
  private static final int SLACK_S = 4 * ClaimCluster.STEP_S;
  private static final int SMALL_PODS = 36;
  private static final int SMALL_PODS_END_S = SMALL_PODS / 4 * ClaimCluster.STEP_S + SLACK_S;

  private final ClaimCluster cluster = new ClaimCluster(2);

  /** Two pods run on the two GPUs, until 100 and 200 s. */
  private void twoRun() {
    cluster.create("first", Map.of(), 100, 100);
    cluster.create("second", Map.of(), 100, 200);
    cluster.until(10);
    assertThat(cluster.bound()).containsExactly("first", "second");
  }

  private void pair(int share) {
    pair(cluster, share, 0);
  }

  private static void pair(ClaimCluster of, int share, int runS) {
    of.create("pair-0", Pods.gang("pair", 2), share, runS);
    of.create("pair-1", Pods.gang("pair", 2), share, runS);
  }

  /** One each 5 s. Those that kube-scheduler tries first give their devices back: four a step. */
  private static void smallPods(ClaimCluster of, int fromS, int share, int runS) {
    for (int i = 0; i < SMALL_PODS; i++) {
      of.create("small-" + i, Map.of(), share, runS);
      of.until(fromS + 5 * i);
    }
  }

  @Test
  void aStreamOfSmallPodsDoesNotDelayALargeGang() {
    twoRun();
    pair(100);
    smallPods(cluster, 15, 50, 0);
    assertThat(cluster.bound()).containsExactly("first", "second");
    assertThat(cluster.lastFailure).contains("its GPUs are held for gang default/pair, from ");
    cluster.until(210 + SMALL_PODS_END_S);
    assertThat(cluster.bound()).startsWith("first", "second", "pair-0", "pair-1");
  }

  /** A younger pod that gets no devices need not give any back, so it cannot take them again. */
  @Test
  void youngerPodsThatAreTriedFirstGetNoDevicesThatAreHeld() {
    cluster.asks = true;
    twoRun();
    pair(100);
    cluster.until(15);
    smallPods(cluster, 20, 30, 0);
    assertThat(cluster.lastFailure).doesNotContain("are held for");
    cluster.until(210 + SLACK_S);
    assertThat(cluster.bound()).startsWith("first", "second", "pair-0", "pair-1");
  }

  /** Which of a node's GPUs a younger pod would get is not known before it has one. */
  @Test
  void onlyNodesWhoseGpusAreHeldAreKeptFromYoungerPods() {
    ClaimCluster two = new ClaimCluster(2, 2);
    two.asks = true;
    for (int i = 0; i < 4; i++) {
      two.create("whole-" + i, Map.of(), i == 3 ? 50 : 100, i < 2 ? 100 : 0);
    }
    two.until(10);
    pair(two, 100, 0);
    two.until(15);
    two.create("half", Map.of(), 50, 0);
    two.until(40);
    assertThat(two.bound()).contains("half").doesNotContain("pair-0");
    two.until(110 + SLACK_S);
    assertThat(two.bound()).contains("pair-0", "pair-1");
  }

  /** Two nodes with one GPU each, and claims from templates. */
  @Test
  void aGangOverTwoNodesWithClaimsFromTemplatesHasAPlace() {
    ClaimCluster two = new ClaimCluster(2, 1);
    two.hasTemplates = true;
    two.create("first", Map.of(), 100, 100);
    two.create("second", Map.of(), 100, 200);
    two.until(10);
    pair(two, 100, 0);
    two.create("small", Map.of(), 50, 0);
    two.until(195);
    assertThat(two.bound()).containsExactly("first", "second");
    assertThat(two.lastFailure).isNotEmpty();
    two.until(210 + SLACK_S);
    assertThat(two.bound()).containsExactly("first", "second", "pair-0", "pair-1");
  }

  /** For example, its node has left the cluster, and the pod there is not gone yet. */
  @Test
  void aClaimOnADeviceOfNoSliceCostsNobodyTheReservation() {
    ClaimCluster three = new ClaimCluster(3, 1);
    three.create("stays", Map.of(), 100, 0);
    three.create("first", Map.of(), 100, 100);
    three.create("second", Map.of(), 100, 200);
    three.until(10);
    three.lose("n0");
    pair(three, 100, 0);
    smallPods(three, 15, 50, 0);
    assertThat(three.bound()).containsExactly("stays", "first", "second");
    assertThat(three.lastFailure).contains("its GPUs are held for gang default/pair, from ");
    three.until(210 + SMALL_PODS_END_S);
    assertThat(three.bound()).startsWith("stays", "first", "second", "pair-0", "pair-1");
  }

  @Test
  void podsThatEndInTimeRunBeforeIt() {
    twoRun();
    pair(100);
    cluster.create("short", Map.of(), 100, 50);
    cluster.create("long", Map.of(), 100, 500);
    cluster.until(140);
    assertThat(cluster.bound()).containsExactly("first", "second", "short");
    cluster.until(210 + SLACK_S);
    assertThat(cluster.bound()).endsWith("pair-0", "pair-1");
  }

  @Test
  void podsThatAreNotInItsWayRunBeforeIt() {
    twoRun();
    pair(60);
    cluster.create("forty", Map.of(), 40, 0);
    cluster.create("more", Map.of(), 10, 0);
    cluster.until(190);
    assertThat(cluster.bound()).containsExactly("first", "second", "forty");
    cluster.until(210 + SLACK_S);
    assertThat(cluster.bound()).contains("pair-0", "pair-1");
  }

  /** Pods without a known end stay off its GPUs, also if nobody knows when those are free. */
  @Test
  void aGangThatWaitsForPodsWithoutAnEndHasAPlaceToo() {
    cluster.create("endless", Map.of(), 100, 0);
    cluster.until(10);
    pair(100);
    cluster.until(20);
    cluster.create("another", Map.of(), 50, 0);
    cluster.create("short", Map.of(), 50, 1000);
    cluster.until(40);
    assertThat(cluster.bound()).containsExactly("endless", "short");
  }

  @Test
  void aGangThatCanNeverFitHoldsNobodyUp() {
    twoRun();
    for (int i = 0; i < 3; i++) {
      cluster.create("three-" + i, Pods.gang("three", 3), 100, 0);
    }
    cluster.create("small", Map.of(), 50, 0);
    cluster.until(120);
    assertThat(cluster.bound()).contains("small");
  }

  @Test
  void aGangThatLacksAPodHoldsNobodyUp() {
    twoRun();
    cluster.create("half", Pods.gang("half", 2), 100, 0);
    cluster.create("small", Map.of(), 50, 0);
    cluster.until(110 + 2 * ClaimCluster.HOLD);
    assertThat(cluster.bound()).contains("small");
  }

  /** A selector, for example, that no node satisfies: the slices do not tell. */
  @Test
  void podsThatSeemToFitHoldOthersUpForSomeTimeOnly() {
    cluster.create("other", Map.of(), 50, 0);
    cluster.until(10);
    cluster.unschedulable.add("picky");
    cluster.create("picky", Map.of(), 100, 0);
    cluster.create("picky-too", Map.of(), 100, 0);
    cluster.unschedulable.add("picky-too");
    cluster.create("small", Map.of(), 100, 0);
    cluster.until(30);
    assertThat(cluster.bound()).containsExactly("other");
    cluster.until(10 + 4 * ClaimCluster.HOLD * ClaimCluster.STEP_S);
    assertThat(cluster.bound()).containsExactly("other", "small");
  }

  /** However many pods of a Deployment there are whose selector no node satisfies. */
  @Test
  void podsThatAreAlikeHoldOthersUpTogether() {
    for (int i = 0; i < 8; i++) {
      cluster.unschedulable.add("picky-" + i);
      cluster.create("picky-" + i, Map.of(), 100, 0);
    }
    cluster.until(5);
    cluster.create("other", Map.of(), 60, 0);
    cluster.create("another", Map.of(), 60, 0);
    cluster.until((ClaimCluster.HOLD + 4) * ClaimCluster.STEP_S);
    assertThat(cluster.bound()).containsExactly("another", "other");
  }

  /** The pods that were given up had another obstacle, such as a volume. */
  @Test
  void podsLikeThoseThatWereGivenUpHaveAPlaceOnceOneGetsADevice() {
    cluster.unschedulable.add("picky");
    cluster.create("picky", Map.of(), 100, 0);
    cluster.until(5);
    cluster.create("other", Map.of(), 60, 0);
    cluster.create("another", Map.of(), 60, 100);
    cluster.until((ClaimCluster.HOLD + 4) * ClaimCluster.STEP_S);
    assertThat(cluster.bound()).containsExactly("another", "other");
    cluster.create("alike", Map.of(), 100, 1000);
    int nowS = (ClaimCluster.HOLD + 4 + 22) * ClaimCluster.STEP_S;
    cluster.until(nowS);
    assertThat(cluster.bound()).containsExactly("another", "other", "alike");
    cluster.unschedulable.add("slow");
    cluster.create("slow", Map.of(), 100, 0);
    cluster.create("young", Map.of(), 50, 0);
    cluster.until(nowS + 1000 + SLACK_S);
    assertThat(cluster.bound()).containsExactly("another", "other", "alike");
    cluster.unschedulable.remove("slow");
    cluster.until(nowS + 1000 + 2 * SLACK_S);
    assertThat(cluster.bound()).containsExactly("another", "other", "alike", "slow");
  }

  /** There is always room for the oldest, and it never uses it. */
  @Test
  void aLargeGangHasAPlaceBehindAPodThatFitsAndIsNotScheduled() {
    cluster.unschedulable.add("picky");
    cluster.create("picky", Map.of(), 10, 0);
    cluster.create("first", Map.of(), 90, 100);
    cluster.create("second", Map.of(), 90, 200);
    cluster.until(10);
    pair(90);
    smallPods(cluster, 15, 45, 0);
    assertThat(cluster.bound()).containsExactly("first", "second");
    assertThat(cluster.lastFailure).contains("its GPUs are held for gang default/pair, from ");
    cluster.until(210 + SMALL_PODS_END_S);
    assertThat(cluster.bound()).startsWith("first", "second", "pair-0", "pair-1");
  }

  /** A pod that has ended is no pod without a known end, though its claim has devices yet. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void podsThatHaveEndedOpenNoGapForYoungerOnes(boolean keepsEnded) {
    cluster.keepsEnded = keepsEnded;
    cluster.freeingS = 2 * ClaimCluster.STEP_S;
    cluster.create("first", Map.of(), 60, 100);
    cluster.create("second", Map.of(), 60, 200);
    cluster.until(10);
    pair(100);
    cluster.until(15);
    smallPods(cluster, 20, 30, 1000);
    cluster.until(210 + cluster.freeingS + SMALL_PODS_END_S);
    assertThat(cluster.bound()).startsWith("first", "second", "pair-0", "pair-1");
  }

  /** Pods with an end may run before the oldest, as nobody knows when that begins. */
  @Test
  void aGangHasAPlaceBehindAPodThatWaitsForPodsWithoutAnEnd() {
    thePairHasAPlaceBehindTheWholePodAnd(() -> {});
  }

  /** However many they are: nobody waits for what they ask. */
  @Test
  void gangsThatCanNeverFitTakeNobodysPlaceInLine() {
    thePairHasAPlaceBehindTheWholePodAnd(
        () -> {
          for (int share = 91; share < 99; share++) {
            for (int i = 0; i < 3; i++) {
              String gang = "large-" + share;
              cluster.create(gang + "-" + i, Pods.gang(gang, 3), share, 0);
            }
          }
        });
  }

  private void thePairHasAPlaceBehindTheWholePodAnd(Runnable others) {
    cluster.create("endless", Map.of(), 30, 0);
    cluster.create("first", Map.of(), 70, 100);
    cluster.create("endless-too", Map.of(), 30, 0);
    cluster.create("second", Map.of(), 70, 200);
    cluster.create("whole", Map.of(), 100, 0);
    cluster.until(10);
    others.run();
    cluster.until(15);
    pair(cluster, 60, 5000);
    smallPods(cluster, 20, 40, 1000);
    cluster.until(210 + SMALL_PODS_END_S);
    assertThat(cluster.bound())
        .containsExactly("endless", "first", "endless-too", "second", "pair-0", "pair-1");
  }

  /** The names tell, whichever was created first. */
  @Test
  void ofPodsOfTheSameSecondTheLowerNameIsTheOlderOne() {
    twoRun();
    cluster.create("last", Map.of(), 100, 0);
    cluster.create("early", Map.of(), 100, 0);
    cluster.until(110 + SLACK_S);
    assertThat(cluster.bound()).containsExactly("first", "second", "early");
    cluster.until(210 + SLACK_S);
    assertThat(cluster.bound()).containsExactly("first", "second", "early", "last");
  }
}
