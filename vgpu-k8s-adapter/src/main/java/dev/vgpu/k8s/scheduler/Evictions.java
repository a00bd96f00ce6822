package dev.vgpu.k8s.scheduler;

import dev.vgpu.k8s.http.ApiFailures;
import dev.vgpu.k8s.scheduler.line.Labels;
import io.fabric8.kubernetes.api.model.LabelSelector;
import io.fabric8.kubernetes.api.model.LabelSelectorRequirement;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.policy.v1.PodDisruptionBudget;
import io.fabric8.kubernetes.api.model.policy.v1.PodDisruptionBudgetStatus;
import io.fabric8.kubernetes.client.KubernetesClientException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;

/**
 * Evicts the pods of one decision: all, or none.
 *
 * <p>The API server decides on each eviction by itself. Therefore several are tried first. A trial
 * takes nothing from a budget, so two pods pass under a budget that allows one; the budgets are
 * counted here as well, by the rules of the API server. Another process may use up a budget between
 * the trial and the eviction. Pods under the tightest budgets go first, so that such a refusal
 * comes before anything is lost, if possible.
 *
 * <p>Immutable; each call blocks until the API server answers.
 */
final class Evictions {
  private final Cluster cluster;

  Evictions(Cluster cluster) {
    this.cluster = cluster;
  }

  /**
   * Evicts pods.
   *
   * @param pods the pods, as they were seen last
   * @param gone is told of those that were not there any more
   * @throws KubernetesClientException if one may not be evicted; the message says how many were
   *     evicted before it, if any
   */
  void evict(List<Pod> pods, Consumer<Pod> gone) {
    List<Pod> order = pods.size() < 2 ? pods : permitted(pods);
    int done = 0;
    for (Pod pod : order) {
      try {
        cluster.evict(pod);
        done++;
      } catch (KubernetesClientException e) {
        if (ApiFailures.isGone(e)) {
          gone.accept(pod);
        } else if (done == 0) {
          throw e;
        } else {
          throw new KubernetesClientException(
              e.getMessage() + "; evicted before it: " + done + " of " + pods.size() + " pods");
        }
      }
    }
  }

  /**
   * {@return the pods in the order of their evictions}
   *
   * @throws KubernetesClientException if they may not all be evicted
   */
  private List<Pod> permitted(List<Pod> pods) {
    for (Pod pod : pods) {
      try {
        cluster.tryEvict(pod);
      } catch (KubernetesClientException e) {
        if (!ApiFailures.isGone(e)) {
          throw e;
        }
      }
    }
    Set<String> namespaces =
        pods.stream().map(pod -> pod.getMetadata().getNamespace()).collect(Collectors.toSet());
    List<PodDisruptionBudget> budgets = new ArrayList<>();
    namespaces.forEach(namespace -> budgets.addAll(cluster.budgets(namespace)));
    objection(pods, budgets)
        .ifPresent(
            why -> {
              throw new KubernetesClientException(why);
            });
    ToIntFunction<Pod> allowance =
        pod ->
            budgets.stream()
                .filter(budget -> counts(budget, pod))
                .mapToInt(Evictions::allowed)
                .min()
                .orElse(Integer.MAX_VALUE);
    return pods.stream().sorted(Comparator.comparingInt(allowance)).toList();
  }

  /** {@return why budgets do not allow all these evictions together; empty if they do} */
  static Optional<String> objection(List<Pod> pods, List<PodDisruptionBudget> budgets) {
    for (PodDisruptionBudget budget : budgets) {
      long asked = pods.stream().filter(pod -> counts(budget, pod)).count();
      if (asked > allowed(budget)) {
        return Optional.of(
            "a disruption budget allows too few evictions: "
                + budget.getMetadata().getNamespace()
                + "/"
                + budget.getMetadata().getName()
                + " allowed="
                + allowed(budget)
                + " asked="
                + asked);
      }
    }
    return Optional.empty();
  }

  private static int allowed(PodDisruptionBudget budget) {
    return budget.getStatus() == null ? 0 : number(budget.getStatus().getDisruptionsAllowed());
  }

  private static int number(Integer count) {
    return Optional.ofNullable(count).orElse(0);
  }

  /** {@return whether a budget covers a pod, and counts its eviction} */
  private static boolean counts(PodDisruptionBudget budget, Pod pod) {
    boolean isCovered =
        Objects.equals(budget.getMetadata().getNamespace(), pod.getMetadata().getNamespace())
            && budget.getSpec() != null
            && budget.getSpec().getSelector() != null
            && selects(budget.getSpec().getSelector(), labels(pod));
    return isCovered && isProtected(pod) && (isReady(pod) || !isFree(budget));
  }

  private static Map<String, String> labels(Pod pod) {
    return Optional.ofNullable(pod.getMetadata().getLabels()).orElse(Map.of());
  }

  private static boolean isProtected(Pod pod) {
    String phase = pod.getStatus() == null ? "" : pod.getStatus().getPhase();
    return pod.getMetadata().getDeletionTimestamp() == null
        && !Set.of("Pending", "Succeeded", "Failed").contains(String.valueOf(phase));
  }

  private static boolean isReady(Pod pod) {
    return pod.getStatus() != null
        && pod.getStatus().getConditions() != null
        && pod.getStatus().getConditions().stream()
            .anyMatch(one -> "Ready".equals(one.getType()) && "True".equals(one.getStatus()));
  }

  /** {@return whether pods that are not ready may go now, and are not counted} */
  private static boolean isFree(PodDisruptionBudget budget) {
    PodDisruptionBudgetStatus status = budget.getStatus();
    return "AlwaysAllow".equals(budget.getSpec().getUnhealthyPodEvictionPolicy())
        || (status != null
            && number(status.getDesiredHealthy()) > 0
            && number(status.getCurrentHealthy()) >= number(status.getDesiredHealthy()));
  }

  private static boolean selects(LabelSelector selector, Map<String, String> labels) {
    Map<String, String> exact = Optional.ofNullable(selector.getMatchLabels()).orElse(Map.of());
    List<LabelSelectorRequirement> all =
        Optional.ofNullable(selector.getMatchExpressions()).orElse(List.of());
    return exact.entrySet().stream()
            .allMatch(one -> one.getValue().equals(labels.get(one.getKey())))
        && all.stream()
            .allMatch(
                one -> Labels.match(labels, one.getKey(), one.getOperator(), one.getValues()));
  }
}
