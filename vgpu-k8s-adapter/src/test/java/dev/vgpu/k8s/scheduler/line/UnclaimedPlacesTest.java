package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * Pods that have a place, and that kube-scheduler cannot bind: a volume is missing, for example.
 */
class UnclaimedPlacesTest {
  private static final Set<String> NODES = Set.of("node-0", "node-1");

  private static List<String> written(SmallCluster cluster) {
    cluster.collect();
    return cluster.actions.stream()
        .filter(Action.Write.class::isInstance)
        .map(one -> ((Action.Write) one).pod().getMetadata().getName())
        .toList();
  }

  private static void tick(SmallCluster cluster, double nowS) {
    cluster.nowS = nowS;
    cluster.line.tick(nowS);
  }

  @Test
  void aPlaceThatNobodyAsksForIsGivenToTheNext() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(1, 1));
    Pod stuck = Pods.whole("stuck", 1, Map.of());
    cluster.create(stuck);
    assertThat(cluster.line.filter(stuck, NODES, 1, 0)).isEqualTo(Answer.node("node-0"));
    cluster.create(Pods.whole("next", 1, Map.of()));
    assertThat(cluster.schedule("uid-next")).isFalse();
    tick(cluster, 250);
    assertThat(cluster.line.filter(stuck, NODES, 1, 250)).isEqualTo(Answer.node("node-0"));
    tick(cluster, 500);
    assertThat(written(cluster)).as("the question has renewed it").isEmpty();
    tick(cluster, 551);
    assertThat(written(cluster)).containsExactly("next");
    cluster.delete("uid-next");
    assertThat(cluster.line.filter(stuck, NODES, 1, 600)).isEqualTo(Answer.node("node-0"));
  }

  @Test
  void aWrittenGangThatNobodyAsksForIsGivenUpAlsoAfterARestart() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 1));
    Pods.gangOfWholes("pair", 2).forEach(cluster::create);
    cluster.settleUntilWritten();
    cluster.nowS = 1000;
    cluster.restart();
    cluster.create(Pods.whole("next", 1, Map.of()));
    assertThat(cluster.schedule("uid-next")).isFalse();
    tick(cluster, 1300);
    assertThat(written(cluster)).isEmpty();
    tick(cluster, 1301);
    assertThat(written(cluster)).containsExactly("next");
  }

  /** One member waits to be bound; the other one cannot be. */
  @Test
  void aGangWhoseMemberDoesNotComeGivesItsPlacesToTheNext() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 1));
    List<Pod> pair = Pods.gangOfWholes("pair", 2);
    pair.forEach(cluster::create);
    assertThat(cluster.schedule("uid-pair-0")).isFalse();
    assertThat(cluster.line.filter(pair.get(1), NODES, 2, 0).kind()).isEqualTo(Answer.Kind.NODE);
    assertThat(cluster.schedule("uid-pair-0")).isTrue();
    List.copyOf(cluster.actions).forEach(cluster::act);
    cluster.create(Pods.whole("next", 1, Map.of()));
    assertThat(cluster.schedule("uid-next")).isFalse();
    tick(cluster, 60);
    cluster.line.tooLate("uid-pair-0", "too long", 60);
    assertThat(cluster.binding.remove("uid-pair-0").join()).isEqualTo("too long");
    assertThat(written(cluster)).containsExactly("next");
    assertThat(cluster.schedule("uid-pair-0")).isFalse();
    assertThat(cluster.lastReason).contains("1 of 2 members are here");
    cluster.delete("uid-next");
    cluster.settle();
    assertThat(cluster.isBound("uid-pair-0") && cluster.isBound("uid-pair-1"))
        .as("both come now")
        .isTrue();
  }
}
