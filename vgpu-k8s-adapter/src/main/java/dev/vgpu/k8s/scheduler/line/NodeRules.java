package dev.vgpu.k8s.scheduler.line;

import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.NodeSelector;
import io.fabric8.kubernetes.api.model.NodeSelectorRequirement;
import io.fabric8.kubernetes.api.model.NodeSelectorTerm;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.Taint;
import io.fabric8.kubernetes.api.model.Toleration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Which pods a node takes, as far as its labels, its taints and its cordon say, by kube-scheduler's
 * rules. What else kube-scheduler looks at, such as volumes and other pods, is not known here.
 * Immutable.
 *
 * @param name the node's name
 * @param labels its labels
 * @param taints the taints that keep pods away; a cordon is one of them
 */
public record NodeRules(String name, Map<String, String> labels, List<Taint> taints) {
  private static final String CORDON = "node.kubernetes.io/unschedulable";
  private static final String NO_SCHEDULE = "NoSchedule";

  /** Copies the labels and the taints. */
  public NodeRules {
    labels = Map.copyOf(labels);
    taints = List.copyOf(taints);
  }

  /** {@return a node's rules} */
  public static NodeRules of(Node node) {
    List<Taint> taints = new ArrayList<>();
    if (node.getSpec() != null) {
      list(node.getSpec().getTaints()).stream()
          .filter(one -> !"PreferNoSchedule".equals(one.getEffect()))
          .forEach(taints::add);
      if (Boolean.TRUE.equals(node.getSpec().getUnschedulable())) {
        taints.add(new Taint(NO_SCHEDULE, CORDON, null, null));
      }
    }
    Map<String, String> labels = node.getMetadata().getLabels();
    return new NodeRules(node.getMetadata().getName(), labels == null ? Map.of() : labels, taints);
  }

  /**
   * What of a pod decides which nodes take it. Immutable.
   *
   * @param tolerations the taints that it tolerates
   * @param labels the labels that its node must have
   * @param required the terms of which its node must fulfil one; empty for any node
   */
  record Wish(
      List<Toleration> tolerations, Map<String, String> labels, Optional<NodeSelector> required) {
    public static Wish of(Pod pod) {
      return new Wish(
          list(pod.getSpec().getTolerations()),
          Optional.ofNullable(pod.getSpec().getNodeSelector()).orElse(Map.of()),
          Optional.ofNullable(pod.getSpec().getAffinity())
              .map(one -> one.getNodeAffinity())
              .map(one -> one.getRequiredDuringSchedulingIgnoredDuringExecution()));
    }
  }

  /** {@return whether the node takes a pod} */
  boolean takes(Wish wish) {
    return taints.stream()
            .allMatch(taint -> wish.tolerations.stream().anyMatch(one -> tolerates(one, taint)))
        && wish.labels.entrySet().stream()
            .allMatch(one -> one.getValue().equals(labels.get(one.getKey())))
        && wish.required.stream()
            .allMatch(
                one -> list(one.getNodeSelectorTerms()).stream().anyMatch(term -> fulfils(term)));
  }

  private boolean fulfils(NodeSelectorTerm term) {
    List<NodeSelectorRequirement> expressions = list(term.getMatchExpressions());
    List<NodeSelectorRequirement> fields = list(term.getMatchFields());
    return !(expressions.isEmpty() && fields.isEmpty())
        && expressions.stream().allMatch(one -> fulfils(one, labels))
        && fields.stream().allMatch(one -> fulfils(one, Map.of("metadata.name", name)));
  }

  private static boolean fulfils(NodeSelectorRequirement one, Map<String, String> labels) {
    return Labels.match(labels, one.getKey(), one.getOperator(), list(one.getValues()));
  }

  private static boolean tolerates(Toleration one, Taint taint) {
    boolean isItsEffect = isEmpty(one.getEffect()) || one.getEffect().equals(taint.getEffect());
    boolean isItsKey = isEmpty(one.getKey()) || one.getKey().equals(taint.getKey());
    boolean isEqual = isEmpty(one.getOperator()) || "Equal".equals(one.getOperator());
    return isItsEffect
        && isItsKey
        && (!isEqual || text(one.getValue()).equals(text(taint.getValue())));
  }

  private static boolean isEmpty(@Nullable String text) {
    return text(text).isEmpty();
  }

  private static String text(@Nullable String text) {
    return text == null ? "" : text;
  }

  private static <T> List<T> list(@Nullable List<T> all) {
    return all == null ? List.of() : all;
  }
}
