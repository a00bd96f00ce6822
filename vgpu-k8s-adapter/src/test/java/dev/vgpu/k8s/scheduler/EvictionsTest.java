package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.k8s.node.MockApi;
import io.fabric8.kubernetes.api.model.LabelSelectorBuilder;
import io.fabric8.kubernetes.api.model.LabelSelectorRequirement;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.policy.v1.PodDisruptionBudget;
import io.fabric8.kubernetes.api.model.policy.v1.PodDisruptionBudgetBuilder;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.server.mock.KubernetesMockServer;
import io.fabric8.mockwebserver.Context;
import io.fabric8.mockwebserver.MockWebServer;
import java.io.IOException;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Evictions of several pods, with an API server that decides on each by itself. */
class EvictionsTest {
  private final BindingDispatcher api = new BindingDispatcher();
  private final KubernetesMockServer apiServer =
      new KubernetesMockServer(new Context(), new MockWebServer(), new HashMap<>(), api, false);
  private final List<String> gone = new ArrayList<>();
  private KubernetesClient client;
  private Evictions evictions;

  @BeforeEach
  void open() throws IOException {
    apiServer.init(InetAddress.getLoopbackAddress(), 0);
    client =
        new KubernetesClientBuilder()
            .withConfig(
                new ConfigBuilder()
                    .withMasterUrl(apiServer.url("/"))
                    .withRequestRetryBackoffLimit(0)
                    .build())
            .build();
    evictions = new Evictions(new Cluster(client, () -> true));
  }

  @AfterEach
  void close() {
    client.close();
    MockApi.end(apiServer);
  }

  /** A pod that runs, with a label. */
  private static Pod runs(String name, String job, boolean isReady) {
    return new PodBuilder(Pods.whole(name, 1, Map.of()))
        .editMetadata()
        .withLabels(Map.of("job", job))
        .endMetadata()
        .editStatus()
        .withPhase("Running")
        .addNewCondition()
        .withType("Ready")
        .withStatus(isReady ? "True" : "False")
        .endCondition()
        .endStatus()
        .build();
  }

  private Pod create(String name, String job) {
    return client.resource(runs(name, job, true)).create();
  }

  private static PodDisruptionBudget budget(String job, int allowed) {
    return new PodDisruptionBudgetBuilder()
        .withNewMetadata()
        .withName("keep-" + job)
        .withNamespace("default")
        .endMetadata()
        .withNewSpec()
        .withNewSelector()
        .withMatchLabels(Map.of("job", job))
        .endSelector()
        .endSpec()
        .withNewStatus()
        .withDisruptionsAllowed(allowed)
        .endStatus()
        .build();
  }

  private void evict(Pod... pods) {
    evictions.evict(List.of(pods), pod -> gone.add(pod.getMetadata().getName()));
  }

  @Test
  void ofTwoPodsOfWhichOneMustStayNoneGoes() {
    Pod first = create("first", "a");
    Pod second = create("second", "b");
    api.kept.add("second");
    assertThatThrownBy(() -> evict(first, second))
        .isInstanceOf(KubernetesClientException.class)
        .hasMessage("a disruption budget forbids it: default/second");
    assertThat(api.evicted).isEmpty();
    assertThat(client.resource(first).get()).isNotNull();
  }

  /** The trial of each of them succeeds. */
  @Test
  void ofTwoPodsUnderABudgetThatAllowsOneNoneGoes() {
    Pod first = create("first", "a");
    Pod second = create("second", "a");
    client.resource(budget("a", 1)).create();
    assertThatThrownBy(() -> evict(first, second))
        .isInstanceOf(KubernetesClientException.class)
        .hasMessageEndingWith("default/keep-a allowed=1 asked=2");
    assertThat(api.tried).containsExactly("first", "second");
    assertThat(api.evicted).isEmpty();
  }

  @Test
  void podsThatMayGoTogetherGoAndThoseUnderTheTightestBudgetFirst() {
    Pod free = create("free", "free");
    Pod loose = create("loose", "b");
    Pod tight = create("tight", "a");
    Pod missing = runs("missing", "b", true);
    client.resource(budget("a", 1)).create();
    client.resource(budget("b", 2)).create();
    evict(free, loose, tight, missing);
    assertThat(api.evicted).containsExactly("tight", "loose", "free");
    assertThat(gone).containsExactly("missing");
  }

  /** Nobody can be protected from that: the message says what is lost. */
  @Test
  void aBudgetThatIsUsedUpAfterTheTrialEndsTheEvictions() {
    Pod first = create("first", "a");
    Pod second = create("second", "b");
    Pod third = create("third", "c");
    api.afterTrial = () -> api.kept.addAll(api.tried.size() == 3 ? List.of("second") : List.of());
    assertThatThrownBy(() -> evict(first, second, third))
        .isInstanceOf(KubernetesClientException.class)
        .hasMessage(
            "a disruption budget forbids it: default/second; evicted before it: 1 of 3 pods");
    assertThat(api.evicted).containsExactly("first");
    assertThat(client.resource(third).get()).isNotNull();
  }

  @Test
  void oneEvictionNeedsNoTrial() {
    evict(create("single", "a"));
    assertThat(api.tried).isEmpty();
    assertThat(api.evicted).containsExactly("single");
  }

  private static boolean isRefused(PodDisruptionBudget budget, Pod... pods) {
    return Evictions.objection(List.of(pods), List.of(budget)).isPresent();
  }

  @Test
  void budgetsCountThePodsThatTheApiServerCounts() {
    Pod ready = runs("ready", "a", true);
    Pod unready = runs("unready", "a", false);
    Pod pending = new PodBuilder(ready).editStatus().withPhase("Pending").endStatus().build();
    Pod leaving =
        new PodBuilder(ready)
            .editMetadata()
            .withDeletionTimestamp("2026-01-01T00:00:00Z")
            .endMetadata()
            .build();
    assertThat(isRefused(budget("a", 1), ready, pending, leaving)).isFalse();
    assertThat(isRefused(budget("a", 1), ready, unready)).isTrue();
    PodDisruptionBudget healthy =
        new PodDisruptionBudgetBuilder(budget("a", 1))
            .editStatus()
            .withCurrentHealthy(3)
            .withDesiredHealthy(2)
            .endStatus()
            .build();
    assertThat(isRefused(healthy, ready, unready)).isFalse();
    PodDisruptionBudget lenient =
        new PodDisruptionBudgetBuilder(budget("a", 1))
            .editSpec()
            .withUnhealthyPodEvictionPolicy("AlwaysAllow")
            .endSpec()
            .build();
    assertThat(isRefused(lenient, ready, unready)).isFalse();
    assertThat(isRefused(budget("b", 0), ready)).isFalse();
    PodDisruptionBudget unknown =
        new PodDisruptionBudgetBuilder(budget("a", 1)).withStatus(null).build();
    assertThat(isRefused(unknown, ready)).isTrue();
  }

  @Test
  void budgetsSelectByExpressionsToo() {
    Pod ready = runs("ready", "a", true);
    assertThat(isRefused(selecting("In", "a", "b"), ready)).isTrue();
    assertThat(isRefused(selecting("In", "b"), ready)).isFalse();
    assertThat(isRefused(selecting("NotIn", "b"), ready)).isTrue();
    assertThat(isRefused(selecting("NotIn", "a"), ready)).isFalse();
    assertThat(isRefused(selecting("Exists"), ready)).isTrue();
    assertThat(isRefused(selecting("DoesNotExist"), ready)).isFalse();
    PodDisruptionBudget all =
        new PodDisruptionBudgetBuilder(budget("a", 0))
            .editSpec()
            .withSelector(new LabelSelectorBuilder().build())
            .endSpec()
            .build();
    assertThat(isRefused(all, ready)).isTrue();
    PodDisruptionBudget none =
        new PodDisruptionBudgetBuilder(all).editSpec().withSelector(null).endSpec().build();
    assertThat(isRefused(none, ready)).isFalse();
  }

  private static PodDisruptionBudget selecting(String operator, String... values) {
    return new PodDisruptionBudgetBuilder(budget("a", 0))
        .editSpec()
        .withSelector(
            new LabelSelectorBuilder()
                .withMatchExpressions(
                    new LabelSelectorRequirement("job", operator, List.of(values)))
                .build())
        .endSpec()
        .build();
  }
}
