package dev.vgpu.k8s.scheduler.claim;

import io.fabric8.kubernetes.api.model.Affinity;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodSpec;
import io.fabric8.kubernetes.api.model.Toleration;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaimSpec;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What makes a pod with a claim like another one: which nodes it may use, and what it asks. If
 * kube-scheduler finds no device for the one, it probably finds none for the other.
 *
 * @param nodeSelector the pod's node selector
 * @param affinity the pod's affinity
 * @param tolerations the pod's tolerations
 * @param claim what the claim asks
 */
record Likeness(
    @Nullable Map<String, String> nodeSelector,
    @Nullable Affinity affinity,
    @Nullable List<Toleration> tolerations,
    @Nullable ResourceClaimSpec claim) {

  /** {@return that of a pod with one of its claims} */
  static Likeness of(Pod pod, ResourceClaim claim) {
    PodSpec spec = pod.getSpec();
    return new Likeness(
        spec.getNodeSelector(), spec.getAffinity(), spec.getTolerations(), claim.getSpec());
  }
}
