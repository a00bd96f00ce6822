package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Gangs whose size changes. */
class GangSizesTest {
  private static final Set<String> NODES = Set.of("node-0", "node-1", "node-2", "node-3");

  private static Pod member(String name, int size) {
    return Pods.whole(name, 1, Pods.gang("ring", size));
  }

  private static Pod ofGroup(String name) {
    Pod pod = Pods.whole(name, 1, Map.of());
    pod.getMetadata().setLabels(Map.of("scheduling.x-k8s.io/pod-group", "ring"));
    return pod;
  }

  private static long bound(SmallCluster cluster, String prefix) {
    return cluster.pods.keySet().stream()
        .filter(uid -> uid.startsWith("uid-" + prefix) && cluster.isBound(uid))
        .count();
  }

  /** Those of the old size are deleted later, or never. */
  @Test
  void podsOfTheNewSizeDoNotWaitForThoseOfTheOldOne() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(4, 1));
    cluster.create(member("old-0", 4));
    cluster.create(member("old-1", 4));
    cluster.settle();
    cluster.create(member("new-0", 2));
    cluster.settle();
    assertThat(cluster.schedule("uid-new-0")).isFalse();
    assertThat(cluster.lastReason).contains("1 of 2 members are here");
    cluster.create(member("new-1", 2));
    cluster.settle();
    assertThat(bound(cluster, "new")).isEqualTo(2);
    assertThat(bound(cluster, "old")).isZero();
    cluster.delete("uid-old-0");
    cluster.delete("uid-old-1");
    cluster.restart();
    for (int i = 0; i < 3; i++) {
      cluster.create(Pods.whole("other-" + i, 1, Map.of()));
    }
    cluster.settle();
    assertThat(bound(cluster, "other")).isEqualTo(2);
  }

  /** They were bound, and take their time to end. */
  @Test
  void podsMadeAnewWhileTheOldOnesEndAreAGangAgain() {
    for (int size : new int[] {2, 3}) {
      SmallCluster cluster = new SmallCluster(Pods.nodes(4, 1));
      cluster.create(member("old-0", 2));
      cluster.create(member("old-1", 2));
      cluster.settle();
      assertThat(bound(cluster, "old")).isEqualTo(2);
      for (String uid : List.of("uid-old-0", "uid-old-1")) {
        Pod ending =
            new PodBuilder(cluster.pods.get(uid))
                .editMetadata()
                .withDeletionTimestamp("2026-01-01T00:00:00Z")
                .endMetadata()
                .build();
        cluster.pods.put(uid, ending);
        cluster.line.see(ending, 0);
      }
      for (int i = 0; i < size; i++) {
        assertThat(bound(cluster, "new")).as("%d of %d are here", i, size).isZero();
        cluster.create(member("new-" + i, size));
        cluster.settle();
      }
      cluster.delete("uid-old-0");
      cluster.delete("uid-old-1");
      cluster.settle();
      assertThat(bound(cluster, "new")).isEqualTo(size);
    }
  }

  /** Its pods stay, and the next question about one of them tells the new size of all. */
  @Test
  void aChangedGroupObjectCountsForAllPodsThatWait() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(4, 1));
    List<Pod> pods = List.of(ofGroup("ring-0"), ofGroup("ring-1"));
    for (Pod pod : pods) {
      cluster.create(pod);
      assertThat(cluster.line.filter(pod, NODES, 3, 0).text()).contains("of 3 members are here");
    }
    assertThat(cluster.line.filter(pods.get(0), NODES, 2, 0).kind()).isEqualTo(Answer.Kind.NODE);
    assertThat(cluster.line.filter(pods.get(1), NODES, 2, 0).kind()).isEqualTo(Answer.Kind.NODE);
  }

  @Test
  void aChangedAnnotationCountsForItsPod() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(4, 1));
    cluster.create(member("ring-0", 3));
    cluster.create(member("ring-1", 3));
    cluster.settle();
    cluster.create(member("ring-0", 2));
    assertThat(cluster.schedule("uid-ring-0")).isFalse();
    assertThat(cluster.lastReason).contains("1 of 2 members are here");
    cluster.create(member("ring-1", 2));
    cluster.settle();
    assertThat(bound(cluster, "ring")).isEqualTo(2);
  }

  @Test
  void aPodThatComesToARunningGangWaitsForNobodyWhateverSizeItSays() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(4, 1));
    cluster.create(member("ring-0", 2));
    cluster.create(member("ring-1", 2));
    cluster.settle();
    cluster.create(member("more", 3));
    cluster.settle();
    assertThat(bound(cluster, "more")).isEqualTo(1);
  }
}
