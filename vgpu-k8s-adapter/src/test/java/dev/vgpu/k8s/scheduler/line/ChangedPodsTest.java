package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Pods whose owners change what they request while they wait. */
class ChangedPodsTest {
  private static final Set<String> NODE = Set.of("node-0");

  private final SmallCluster cluster = new SmallCluster(Pods.nodes(1, 1));

  /** Its owner changes it; the watch tells the line. */
  private void change(Pod pod) {
    cluster.create(pod);
    cluster.line.see(pod, cluster.nowS);
    cluster.collect();
  }

  private void fill() {
    cluster.create(Pods.share("runs", 60, Map.of()));
    cluster.settle();
  }

  /** The line learns it by the watch, or by kube-scheduler's next question. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aPodThatWaitsGetsWhatItRequestsNow(boolean isTold) {
    fill();
    cluster.create(Pods.share("a", 90, Map.of()));
    assertThat(cluster.schedule("uid-a")).isFalse();
    Pod smaller = Pods.share("a", 40, Map.of());
    if (isTold) {
      change(smaller);
      assertThat(cluster.actions).as("it is woken").hasSize(1);
    } else {
      cluster.create(smaller);
    }
    cluster.settle();
    assertThat(cluster.isBound("uid-a")).isTrue();
    assertThat(cluster.reservation("uid-a")).contains("\"share\":40");
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aPlaceForAnEarlierRequestIsGivenBack(boolean isTold) {
    fill();
    cluster.create(Pods.share("a", 20, Map.of()));
    assertThat(cluster.line.filter(cluster.pods.get("uid-a"), NODE, 1, 0))
        .isEqualTo(Answer.node("node-0"));
    Pod larger = Pods.share("a", 50, Map.of());
    if (isTold) {
      change(larger);
      assertThat(cluster.line.arrive("uid-a", "node-0").join()).contains("no place");
    }
    cluster.create(larger);
    assertThat(cluster.schedule("uid-a")).isFalse();
    assertThat(cluster.lastReason).contains("no room now");
    cluster.delete("uid-runs");
    cluster.settle();
    assertThat(cluster.reservation("uid-a")).contains("\"share\":50");
  }

  /** It has left the line also if what it requests now is refused, or no GPU at all. */
  @ParameterizedTest
  @ValueSource(strings = {"much", ""})
  void aPodThatRequestsNothingAnyMoreHoldsNothing(String share) {
    cluster.create(Pods.share("a", 100, Map.of()));
    assertThat(cluster.line.filter(cluster.pods.get("uid-a"), NODE, 1, 0))
        .isEqualTo(Answer.node("node-0"));
    Pod other = Pods.share("a", 100, Map.of());
    other.getMetadata().getAnnotations().put("vgpu.dev/share", share);
    change(other);
    cluster.create(Pods.whole("b", 1, Map.of()));
    assertThat(cluster.schedule("uid-b")).isTrue();
  }

  @Test
  void aMemberThatIsChangedJoinsItsGangAgain() {
    fill();
    cluster.create(Pods.share("a", 20, Pods.gang("pair", 2)));
    cluster.create(Pods.share("b", 90, Pods.gang("pair", 2)));
    cluster.settle();
    assertThat(cluster.isBound("uid-a")).isFalse();
    change(Pods.share("b", 20, Pods.gang("pair", 2)));
    cluster.settle();
    assertThat(cluster.isBound("uid-a")).isTrue();
    assertThat(cluster.isBound("uid-b")).isTrue();
  }

  /** It waits outside the line: no node serves it, or its gang's size is not known. */
  @Test
  void aPodOutsideTheLineJoinsItWithWhatItRequestsNow() {
    cluster.create(Pods.whole("far", 2, Map.of()));
    assertThat(cluster.schedule("uid-far")).isFalse();
    Pod ring = Pods.whole("ring", 1, Map.of());
    ring.getMetadata().setLabels(Map.of("scheduling.x-k8s.io/pod-group", "ring"));
    cluster.create(ring);
    assertThat(cluster.line.filter(ring, NODE, 0, 0).text()).contains("is not known");
    change(Pods.share("far", 30, Map.of()));
    change(Pods.share("ring", 30, Map.of()));
    assertThat(cluster.line.unsized(9)).isEmpty();
    assertThat(cluster.actions)
        .map(one -> ((Action.Write) one).pod().getMetadata().getName())
        .containsExactly("far", "ring");
  }

  /** Its binding has begun. */
  @Test
  void aPodThatIsBoundRunsWithWhatWasReserved() {
    cluster.create(Pods.share("a", 60, Map.of()));
    assertThat(cluster.schedule("uid-a")).isTrue();
    change(Pods.share("a", 10, Map.of()));
    assertThat(cluster.bind("uid-a")).isTrue();
    assertThat(cluster.reservation("uid-a")).contains("\"share\":60");
    cluster.create(Pods.share("b", 50, Map.of()));
    assertThat(cluster.schedule("uid-b")).isFalse();
  }
}
