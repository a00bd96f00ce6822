package dev.vgpu.k8s.scheduler;

import io.fabric8.kubernetes.api.model.Pod;
import java.util.Map;

/** A write to the API that the line decided; it is carried out outside of its lock. */
sealed interface Action {
  /**
   * Writes a pod's place down, which wakes it as well.
   *
   * @param pod the pod
   * @param place the place
   * @param annotations what is written
   */
  record Write(Pod pod, Place place, Map<String, String> annotations) implements Action {}

  /**
   * Ends a pod for another crew.
   *
   * @param pod the pod
   * @param crew the crew that gets its place
   */
  record Evict(Pod pod, String crew) implements Action {}
}
