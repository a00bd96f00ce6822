package dev.vgpu.k8s.scheduler.line;

import io.fabric8.kubernetes.api.model.Pod;
import java.util.List;
import java.util.Map;

/** A write to the API that the line has decided. It is carried out without the line's lock. */
public sealed interface Action {
  /**
   * Records a pod's place in its annotations. That also makes the cluster's scheduler try the pod
   * again.
   *
   * @param pod the pod
   * @param place the place
   * @param annotations the annotations to write
   */
  record Write(Pod pod, Place place, Map<String, String> annotations) implements Action {}

  /**
   * Evicts pods for another crew: all of them, or none.
   *
   * @param pods the pods
   * @param crew the crew that gets their places
   */
  record Evict(List<Pod> pods, String crew) implements Action {
    /** Copies the list. */
    public Evict {
      pods = List.copyOf(pods);
    }
  }
}
