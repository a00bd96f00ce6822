package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.model.Shape;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.fleet.placement.Workload;
import dev.vgpu.k8s.names.PodRequests;
import dev.vgpu.k8s.scheduler.Pods;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What the policy takes for typical. */
class RecentRequestsTest {
  private static final Set<String> MODELS = Set.of("NVIDIA A100-SXM4-40GB", "Tesla T4");

  private final RecentRequests recent = new RecentRequests();

  private void see(String name, int count, int percent) {
    for (int i = 0; i < count; i++) {
      Pod pod = Pods.share(name + "-" + i, percent, Map.of());
      recent.add(new Entry(pod, PodRequests.of(pod)));
    }
  }

  private static List<Integer> shares(Workload workload) {
    return workload.shapes().stream().map(Shape::sharePercent).toList();
  }

  @Test
  void fewRequestsSayNothing() {
    Workload usual = recent.workload(MODELS);
    see("a", 49, 30);
    see("a", 49, 30);
    assertThat(recent.workload(MODELS)).isEqualTo(usual);
    assertThat(usual.shapes()).hasSizeGreaterThan(4);
    see("b", 1, 30);
    assertThat(shares(recent.workload(MODELS))).containsExactly(30);
  }

  @Test
  void theirOddsAreTheirNumbers() {
    see("a", 75, 30);
    see("b", 25, 60);
    Workload workload = recent.workload(MODELS);
    assertThat(shares(workload)).containsExactly(30, 60);
    assertThat(workload.odds()).containsExactly(0.75, 0.25);
  }

  @Test
  void onlyTheLastThousandCount() {
    see("a", 1000, 30);
    see("b", 1000, 60);
    assertThat(shares(recent.workload(MODELS))).containsExactly(60);
  }

  @Test
  void modelsAreThoseOfTheCluster() {
    for (int i = 0; i < 50; i++) {
      Pod pod = Pods.share("a-" + i, 30, Map.of("vgpu.dev/model", "A100"));
      recent.add(new Entry(pod, PodRequests.of(pod)));
    }
    assertThat(recent.workload(MODELS).shapes().get(0).models())
        .containsExactly("NVIDIA A100-SXM4-40GB");
  }

  @Test
  void podsThatRunAndPodsThatWaitCount() {
    List<Pod> running = new ArrayList<>();
    for (int i = 0; i < 30; i++) {
      running.add(Pods.bound(Pods.share("a-" + i, 30, Map.of()), "node-0", Map.of()));
    }
    Roll roll = new Roll(Policies.OURS);
    roll.begin(Pods.nodes(1, 8), running, Map.of(), 0);
    Entrance entrance = new Entrance(roll, new SharedNodes(roll));
    for (int i = 0; i < 20; i++) {
      Pod pod = Pods.share("b-" + i, 30, Map.of());
      Entry ignored = entrance.enter(pod, Optional.of(PodRequests.of(pod).orElseThrow()), 1);
    }
    assertThat(shares(roll.recent.workload(MODELS))).containsExactly(30);
  }
}
