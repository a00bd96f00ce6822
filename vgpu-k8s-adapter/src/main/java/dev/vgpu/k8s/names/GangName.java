package dev.vgpu.k8s.names;

import java.util.Optional;

/**
 * The gang that a pod belongs to. Immutable.
 *
 * @param name its name in the pod's namespace
 * @param size how many pods it needs before any starts; 0 if its group object states the size
 * @param group the API group and version of that object; empty if the size is known
 */
public record GangName(String name, int size, String group) {
  private static final int MOST = 100_000;
  private static final String KOORDINATOR = "gang.scheduling.koordinator.sh/";

  /** {@return the gang that a pod names, in any supported vocabulary} */
  static Optional<GangName> of(PodView pod, Optional<String> nativeGroup) {
    Optional<GangName> ours = sized(pod, "vgpu.dev/gang", "vgpu.dev/gang-size");
    Optional<GangName> koordinator =
        sized(pod, KOORDINATOR + "name", KOORDINATOR + "min-available");
    Optional<GangName> found = Optional.empty();
    for (Optional<GangName> one :
        java.util.List.of(
            ours,
            koordinator,
            nativeGroup.map(name -> new GangName(name, 0, "scheduling.k8s.io/v1alpha2")),
            pod.label("scheduling.x-k8s.io/pod-group")
                .map(name -> new GangName(name, 0, "scheduling.x-k8s.io/v1alpha1")),
            pod.label("pod-group.scheduling.sigs.k8s.io")
                .map(name -> new GangName(name, 0, "scheduling.sigs.k8s.io/v1alpha1")),
            pod.annotation("scheduling.k8s.io/group-name")
                .map(name -> new GangName(name, 0, "scheduling.volcano.sh/v1beta1")),
            pod.annotation("pod-group-name")
                .map(name -> new GangName(name, 0, "scheduling.run.ai/v2alpha2")))) {
      if (one.isPresent() && found.isPresent() && !one.get().name().equals(found.get().name())) {
        throw new PodRefusedException(
            "the pod names two gangs: " + found.get().name() + " and " + one.get().name());
      }
      found = found.isPresent() ? found : one;
    }
    return found;
  }

  private static Optional<GangName> sized(PodView pod, String name, String size) {
    Optional<String> found = pod.annotation(name);
    if (found.isEmpty()) {
      return Optional.empty();
    }
    String text =
        pod.annotation(size)
            .orElseThrow(() -> new PodRefusedException(name + " needs " + size + " beside it"));
    int count = pod.whole(size, PodView.number(size, text), 1, MOST, "a number of pods");
    return Optional.of(new GangName(found.get(), count, ""));
  }
}
