package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Which pods are evicted after the state was built anew. */
class VictimsTest {
  private static final Map<String, String> ONLINE = Map.of("vgpu.dev/class", "online");

  /** An offline pod on each node; those that came first are in the list later. */
  private static SmallCluster full(int nodes) {
    SmallCluster cluster = new SmallCluster(Pods.nodes(nodes, 1));
    for (int i = 0; i < nodes; i++) {
      Pod pod = Pods.whole("batch-" + i, 1, Map.of("vgpu.dev/class", "offline"));
      pod.getMetadata().setCreationTimestamp("2026-01-01T00:00:0" + (i + 3) % nodes + "Z");
      cluster.create(pod);
    }
    cluster.settle();
    return cluster;
  }

  private static List<String> evicted(SmallCluster cluster) {
    List<String> names = new ArrayList<>();
    for (Action action : cluster.actions) {
      if (action instanceof Action.Evict evict) {
        evict.pods().forEach(pod -> names.add(pod.getMetadata().getUid()));
      }
    }
    return names;
  }

  /** The API server has told the pod to end; it takes its time. */
  private static void beginToEnd(SmallCluster cluster, String uid) {
    Pod ending =
        new PodBuilder(cluster.pods.get(uid))
            .editMetadata()
            .withDeletionTimestamp("2026-01-01T00:01:00Z")
            .endMetadata()
            .build();
    cluster.pods.put(uid, ending);
    cluster.line.see(ending, cluster.nowS);
  }

  @Test
  void theYoungestGoesFirstAlsoAfterARestart() {
    SmallCluster cluster = full(5);
    cluster.restart();
    cluster.create(Pods.whole("online", 1, ONLINE));
    assertThat(cluster.schedule("uid-online")).isTrue();
    assertThat(evicted(cluster)).containsExactly("uid-batch-1");
  }

  /** Not from when it was created: it waited for long. */
  @Test
  void whatBeganLastIsTheYoungest() {
    SmallCluster cluster = full(5);
    cluster.pods.get("uid-batch-3").getStatus().setStartTime("2026-01-01T00:00:30Z");
    cluster.restart();
    cluster.create(Pods.whole("online", 1, ONLINE));
    assertThat(cluster.schedule("uid-online")).isTrue();
    assertThat(evicted(cluster)).containsExactly("uid-batch-3");
  }

  @Test
  void noSecondPodIsEvictedAfterARestart() {
    SmallCluster cluster = full(5);
    cluster.create(Pods.whole("online", 1, ONLINE));
    assertThat(cluster.schedule("uid-online")).isTrue();
    String victim = evicted(cluster).get(0);
    beginToEnd(cluster, victim);
    cluster.restart();
    assertThat(cluster.schedule("uid-online")).isTrue();
    assertThat(evicted(cluster)).isEmpty();
    assertThat(cluster.bind("uid-online")).as("its place is in use").isFalse();
    cluster.delete(victim);
    cluster.settle();
    assertThat(cluster.isBound("uid-online")).isTrue();
    assertThat(cluster.pods).hasSize(5);
  }

  /** The eviction has been decided, and the API server has not carried it out yet. */
  @Test
  void noSecondPodIsEvictedWhenANodeChanges() {
    SmallCluster cluster = full(5);
    cluster.create(Pods.whole("online", 1, ONLINE));
    assertThat(cluster.schedule("uid-online")).isTrue();
    List<Node> changed = new ArrayList<>(Pods.nodes(5, 1));
    changed.set(
        4,
        new NodeBuilder(changed.get(4))
            .editMetadata()
            .addToLabels(NodeGpus.RACK, "r")
            .endMetadata()
            .build());
    cluster.nodes(changed);
    cluster.binding.clear();
    assertThat(cluster.schedule("uid-online")).isTrue();
    assertThat(evicted(cluster)).hasSize(1);
    cluster.settle();
    assertThat(cluster.isBound("uid-online")).isTrue();
    assertThat(cluster.pods).hasSize(5);
  }
}
