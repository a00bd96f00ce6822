package dev.vgpu.k8s.scheduler.line;

import java.util.List;

/**
 * A node on which kube-scheduler would preempt pods for another one. Immutable.
 *
 * @param node the node's name
 * @param victims the UIDs of the pods that would be evicted
 * @param violations how many of them their disruption budgets protect
 */
public record Candidate(String node, List<String> victims, long violations) {
  /** Copies the list. */
  public Candidate {
    victims = List.copyOf(victims);
  }
}
