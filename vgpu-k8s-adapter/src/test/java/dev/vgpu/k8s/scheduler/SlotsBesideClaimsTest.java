package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.scheduler.claim.ClaimUse;
import dev.vgpu.k8s.scheduler.line.Answer;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Pods with slots get nothing of a GPU that kube-scheduler has allocated to claims. */
class SlotsBesideClaimsTest {
  private final SmallCluster cluster = new SmallCluster(Pods.nodes(1, 2));

  /** A claim that has a part of a GPU of {@link Pods#nodes}. */
  static ResourceClaim claim(String name, String node, int gpu, int share, String memory) {
    return Serialization.unmarshal(
        String.format(
            Locale.ROOT,
            """
            {"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
             "metadata":{"name":"%s","namespace":"team","uid":"uid-%s"},
             "status":{"allocation":{"devices":{"results":[
               {"request":"gpu","driver":"vgpu.dev","pool":"%s","device":"%s",
                "consumedCapacity":{"share":"%d","memory":"%s"}},
               {"request":"net","driver":"other","pool":"%s","device":"%s"}]}}}}""",
            name,
            name,
            node,
            Driver.device("GPU-" + node + "-" + gpu),
            share,
            memory,
            node,
            Driver.device("GPU-" + node + "-" + (1 - gpu))),
        ResourceClaim.class);
  }

  private void allocate(String name, int gpu, int share, String memory) {
    cluster.claim("uid-" + name, ClaimUse.of(claim(name, "node-0", gpu, share, memory)));
  }

  private void free(String name) {
    cluster.claim("uid-" + name, List.of());
  }

  private void run(String name, int share) {
    cluster.create(Pods.share(name, share, Map.of()));
    cluster.settle();
  }

  @Test
  void whatAClaimHasIsNoRoom() {
    allocate("claim", 0, 60, "1Gi");
    run("a", 50);
    assertThat(cluster.gpus("uid-a")).containsExactly("GPU-node-0-1");
    run("b", 40);
    assertThat(cluster.gpus("uid-b")).containsExactly("GPU-node-0-0");
    run("c", 60);
    assertThat(cluster.isBound("uid-c")).isFalse();
    free("claim");
    cluster.settle();
    assertThat(cluster.gpus("uid-c")).containsExactly("GPU-node-0-0");
  }

  @Test
  void memoryCountsToo() {
    allocate("one", 0, 1, "39Gi");
    allocate("two", 1, 1, "40Gi");
    run("a", 50);
    assertThat(cluster.gpus("uid-a")).containsExactly("GPU-node-0-0");
    run("b", 10);
    assertThat(cluster.isBound("uid-b")).isFalse();
  }

  @Test
  void wholeGpusAreThoseWithoutClaims() {
    allocate("claim", 0, 1, "1Mi");
    cluster.create(Pods.whole("one", 1, Map.of()));
    cluster.settle();
    assertThat(cluster.gpus("uid-one")).containsExactly("GPU-node-0-1");
    cluster.create(Pods.whole("other", 1, Map.of()));
    cluster.settle();
    assertThat(cluster.isBound("uid-other")).isFalse();
  }

  @Test
  void aPlaceThatAClaimGetsBeforeThePodIsBoundIsGivenUp() {
    allocate("other", 1, 60, "1Gi"); // so that the pod's place is on the first GPU
    Pod pod = Pods.share("a", 60, Map.of());
    cluster.create(pod);
    Answer first = cluster.line.filter(pod, Set.of("node-0"), 1, 0);
    assertThat(first.kind()).isEqualTo(Answer.Kind.NODE);
    free("other");
    allocate("claim", 0, 60, "1Gi");
    cluster.settle();
    assertThat(cluster.gpus("uid-a")).containsExactly("GPU-node-0-1");
  }

  /** Both were given at the same moment: the node refuses the second, and its memory counts. */
  @Test
  void moreThanThereIsDoesNotCountTwice() {
    run("a", 60);
    int gpu = cluster.gpus("uid-a").contains("GPU-node-0-0") ? 0 : 1;
    allocate("claim", gpu, 60, "39Gi");
    allocate("other", 1 - gpu, 100, "40Gi");
    run("b", 10);
    assertThat(cluster.isBound("uid-b")).as("no memory is left").isFalse();
    free("claim");
    cluster.settle();
    assertThat(cluster.isBound("uid-b")).isTrue();
  }

  @Test
  void claimsCountAfterARestartAndWhenNodesChange() {
    allocate("claim", 0, 60, "1Gi");
    allocate("other", 1, 60, "1Gi");
    cluster.restart();
    run("b", 40);
    assertThat(cluster.isBound("uid-b")).isTrue();
    cluster.line.nodes(List.of(Pods.node("node-0", 2), Pods.plainNode("node-1", 1)), 1);
    run("a", 50);
    assertThat(cluster.isBound("uid-a")).isFalse();
    free("claim");
    free("other");
    cluster.settle();
    assertThat(cluster.isBound("uid-a")).isTrue();
  }

  @Test
  void accessForAdministrationTakesNothing() {
    ResourceClaim claim = claim("claim", "node-0", 0, 60, "1Gi");
    claim.getStatus().getAllocation().getDevices().getResults().get(0).setAdminAccess(true);
    assertThat(ClaimUse.of(claim)).isEmpty();
  }
}
