package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.k8s.names.GangName;
import dev.vgpu.k8s.names.PodRequests;
import dev.vgpu.k8s.node.MockApi;
import dev.vgpu.k8s.scheduler.line.PodLine;
import dev.vgpu.k8s.scheduler.line.UnsizedGangs;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** How many pods a gang needs, according to the group objects of several systems. */
class PodGroupsTest {
  private final MockApi server = new MockApi();
  private KubernetesClient api;
  private Cluster cluster;

  @BeforeEach
  void open() {
    api = server.client();
    cluster = new Cluster(api, () -> true);
  }

  @AfterEach
  void close() {
    api.close();
    server.close();
  }

  private static GangName gang(Pod pod) {
    return PodRequests.gang(pod).orElseThrow();
  }

  /** The label or annotation by which a pod names its group, and the group's version and spec. */
  @ParameterizedTest
  @CsvSource({
    "label, scheduling.x-k8s.io/pod-group, scheduling.x-k8s.io/v1alpha1, minMember: 3",
    "label, pod-group.scheduling.sigs.k8s.io, scheduling.sigs.k8s.io/v1alpha1, minMember: 3",
    "annotation, scheduling.k8s.io/group-name, scheduling.volcano.sh/v1beta1, minMember: 3",
    "annotation, pod-group-name, scheduling.run.ai/v2alpha2, minMember: 3",
  })
  void othersGroupsSayTheSize(String kind, String key, String version, String spec) {
    boolean isLabel = kind.equals("label");
    Pod pod = Pods.whole("a", 1, isLabel ? Map.of() : Map.of(key, "ring"));
    pod.getMetadata().setLabels(isLabel ? Map.of(key, "ring") : Map.of());
    assertThat(gang(pod).size()).isZero();
    assertThat(cluster.size("default", gang(pod))).isEmpty();
    PodGroups.create(api, "example.com/v1", "ring", "minMember: 7");
    assertThat(cluster.size("default", gang(pod))).as("another system's group").isEmpty();
    PodGroups.create(api, version, "ring", spec);
    assertThat(cluster.size("default", gang(pod))).hasValue(3);
    assertThat(cluster.size("other", gang(pod))).as("another namespace").isEmpty();
  }

  private static final Pod NATIVE =
      new PodBuilder(Pods.whole("a", 1, Map.of()))
          .editSpec()
          .withNewSchedulingGroup()
          .withPodGroupName("ring")
          .endSchedulingGroup()
          .endSpec()
          .build();

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {"schedulingPolicy: {gang: {minCount: 3}}", "gang: {minCount: 3}"})
  void kubernetesOwnGroupsSayTheSize(String spec) {
    PodGroups.create(api, "scheduling.k8s.io/v1alpha2", "ring", spec);
    assertThat(cluster.size("default", gang(NATIVE))).hasValue(3);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {"schedulingPolicy: {basic: {}}", "minMember: 0", "minMember: '3'", "minMember: -1"})
  void aGroupWithoutAUsableNumberSaysNothing(String spec) {
    PodGroups.create(api, "scheduling.k8s.io/v1alpha2", "ring", spec);
    assertThat(cluster.size("default", gang(NATIVE))).isEmpty();
  }

  /** However many gangs wait for theirs, each is looked for in its turn. */
  @Test
  void gangsWithoutGroupsAreLookedForInTurns() {
    UnsizedGangs gangs = new UnsizedGangs();
    Pod a = Pods.whole("a", 1, Map.of());
    Pod b = Pods.whole("b", 1, Map.of());
    Pod c = Pods.whole("c", 1, Map.of());
    gangs.add("first", a);
    gangs.add("first", b);
    gangs.add("second", c);
    assertThat(gangs.next(1)).containsExactly(a);
    assertThat(gangs.next(1)).containsExactly(c);
    gangs.remove("uid-a");
    assertThat(gangs.next(5)).containsExactly(b, c);
    gangs.remove("uid-c");
    assertThat(gangs.take("first")).containsExactly(b);
    assertThat(gangs.next(5)).isEmpty();
  }

  /** The API server may not let this process read some groups. */
  @Test
  void aGroupThatCannotBeReadKeepsNoOtherGangWaiting() {
    PodLine line = new PodLine(Policies.OURS);
    ExtenderService service =
        new ExtenderService(
            line,
            cluster,
            Runnable::run,
            () -> 0,
            Duration.ofSeconds(1),
            (pod, nodes) -> Map.of(),
            (namespace, name, uid) -> Optional.empty());
    line.begin(Pods.nodes(1, 4), List.of(), Map.of(), 0);
    for (String gang : List.of("one", "odd", "other")) {
      Pod pod = Pods.whole(gang, 1, Map.of("pod-group-name", gang));
      assertThat(line.filter(pod, Set.of("node-0"), 0, 0).text()).contains("is not known");
      PodGroups.create(api, "scheduling.run.ai/v2alpha2", gang, "minMember: 2");
    }
    server.missing.put("/podgroups/odd", 403);
    service.lookForSizes(8);
    assertThat(line.unsized(8))
        .extracting(pod -> pod.getMetadata().getName())
        .containsExactly("odd");
  }
}
