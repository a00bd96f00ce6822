package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Pods that waited when another process began to lead; kube-scheduler does not ask about them. */
class WaitingPodsTest {
  private static void create(SmallCluster cluster, Pod pod, int bornS) {
    pod.getMetadata().setCreationTimestamp("2026-01-01T00:00:0" + bornS + "Z");
    cluster.create(pod);
  }

  private static List<String> written(SmallCluster cluster) {
    return cluster.actions.stream()
        .map(one -> ((Action.Write) one).pod().getMetadata().getName())
        .toList();
  }

  /** Two GPUs are in use. A gang of two has waited for the longest. */
  @Test
  void theyKeepTheirOrderAndTheirReservation() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 1));
    cluster.create(Pods.whole("runs-0", 1, Map.of()));
    cluster.create(Pods.whole("runs-1", 1, Map.of()));
    cluster.settle();
    create(cluster, Pods.whole("late", 1, Map.of()), 5);
    int born = 1;
    for (Pod pod : Pods.gangOfWholes("pair", 2)) {
      create(cluster, pod, born++);
    }
    create(cluster, Pods.whole("middle", 1, Map.of()), 3);
    cluster.settle();
    cluster.restart();
    cluster.delete("uid-runs-0");
    assertThat(written(cluster)).as("a place is held for the gang").isEmpty();
    cluster.delete("uid-runs-1");
    assertThat(written(cluster)).containsExactlyInAnyOrder("pair-0", "pair-1");
    cluster.settle();
    cluster.delete("uid-pair-0");
    assertThat(written(cluster)).containsExactly("middle");
  }

  @Test
  void whoWasNotToldToWaitIsNotInLine() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(1, 1));
    Pod pod = Pods.whole("a", 1, Map.of());
    String why = Answer.MARK + "pod waits: no room now";
    cluster.create(pod);
    cluster.create(Pods.waits(Pods.whole("others", 1, Map.of()), "Insufficient cpu"));
    Pod gated = Pods.waits(Pods.whole("gated", 1, Map.of()), why);
    cluster.create(new PodBuilder(gated).editSpec().addNewSchedulingGate("g").endSpec().build());
    Pod ending = Pods.waits(Pods.whole("ending", 1, Map.of()), why);
    ending.getMetadata().setDeletionTimestamp("2026-01-01T00:00:00Z");
    cluster.create(ending);
    cluster.create(Pods.waits(Pods.pod("plain", Map.of(), Map.of("cpu", "1")), why));
    cluster.restart();
    assertThat(cluster.actions).isEmpty();
    assertThat(cluster.line.unsized(9)).isEmpty();
  }

  private static Pod waits(String name, String said) {
    return Pods.waits(Pods.whole(name, 1, Map.of()), said);
  }

  /** Before Kubernetes 1.32, such a pod would be tried again after five minutes. */
  @Test
  void aPodThatNobodyAnsweredAboutIsWoken() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 1));
    cluster.create(
        waits("early", "failed filter with extender at URL http://a:1/filter, code 503"));
    cluster.restart();
    assertThat(written(cluster)).containsExactly("early");
    String refused = "Post \"http://127.0.0.1:8899/filter\": dial tcp: connect: connection refused";
    cluster.line.see(waits("later", refused), 9);
    cluster.collect();
    assertThat(written(cluster)).containsExactly("early", "later");
  }

  /** The process died when the gang had its places, and before kube-scheduler asked to bind it. */
  @Test
  void aGangWithPlacesThatNobodyAnsweredAboutIsWoken() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(2, 1));
    Pods.gangOfWholes("pair", 2).forEach(cluster::create);
    cluster.settleUntilWritten();
    cluster.restart();
    assertThat(written(cluster)).as("kube-scheduler asks by itself").isEmpty();
    String refused = "Post \"http://127.0.0.1:8899/filter\": dial tcp: connect: connection refused";
    cluster.pods.replaceAll((uid, pod) -> Pods.waits(pod, refused));
    cluster.restart();
    assertThat(written(cluster)).containsExactlyInAnyOrder("pair-0", "pair-1");
  }

  @Test
  void aPodThatNoNodeServesIsWokenByALaterProcessToo() {
    Set<KubeletResource> slots = Set.of(KubeletResource.SLOT);
    List<Node> nodes = List.of(Pods.node("node", 1, slots));
    SmallCluster cluster = new SmallCluster(nodes);
    cluster.create(Pods.pod("mem", Map.of(), Map.of("aliyun.com/gpu-mem", "30")));
    cluster.settle();
    cluster.restart();
    cluster.nodes(List.of(Pods.node("node", 1, Set.of(KubeletResource.GPUSHARE))));
    assertThat(written(cluster)).containsExactly("mem");
  }

  @Test
  void theSizeOfAGangIsLookedUpByALaterProcessToo() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(1, 1));
    Pod pod = Pods.whole("ring", 1, Map.of());
    pod.getMetadata().setLabels(Map.of("scheduling.x-k8s.io/pod-group", "ring"));
    cluster.create(Pods.waits(pod, Answer.MARK + "the size of its gang is not known"));
    cluster.restart();
    assertThat(cluster.line.unsized(9)).hasSize(1);
  }
}
