package dev.vgpu.k8s.names;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

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
  private static final String MODE = KOORDINATOR + "mode";
  private static final String GROUPS = KOORDINATOR + "groups";

  /** {@return the gang that a pod names, in any supported vocabulary} An empty name is none. */
  static Optional<GangName> of(PodView pod, Optional<String> nativeGroup) {
    Optional<GangName> ours = sized(pod, "vgpu.dev/gang", "vgpu.dev/gang-size");
    Optional<GangName> koordinator =
        sized(pod, KOORDINATOR + "name", KOORDINATOR + "min-available");
    koordinator.ifPresent(gang -> requireOneStrictGang(pod, gang.name()));
    Optional<GangName> found = Optional.empty();
    for (Optional<GangName> one :
        List.of(
            ours,
            koordinator,
            unsized(nativeGroup, "scheduling.k8s.io/v1alpha2"),
            unsized(pod.label("scheduling.x-k8s.io/pod-group"), "scheduling.x-k8s.io/v1alpha1"),
            unsized(
                pod.label("pod-group.scheduling.sigs.k8s.io"), "scheduling.sigs.k8s.io/v1alpha1"),
            unsized(
                pod.annotation("scheduling.k8s.io/group-name"), "scheduling.volcano.sh/v1beta1"),
            unsized(pod.annotation("pod-group-name"), "scheduling.run.ai/v2alpha2"))) {
      if (one.isPresent() && found.isPresent() && !one.get().name().equals(found.get().name())) {
        throw new PodRefusedException(
            "the pod names two gangs: " + found.get().name() + " and " + one.get().name());
      }
      found = found.isPresent() ? found : one;
    }
    return found;
  }

  /** Koordinator can also bind some of a gang, or several gangs together. */
  private static void requireOneStrictGang(PodView pod, String name) {
    Optional<String> mode = pod.annotation(MODE).filter(text -> !text.equals("Strict"));
    if (mode.isPresent()) {
      throw new PodRefusedException(
          MODE
              + " is "
              + mode.get()
              + ": a gang starts as a whole; leave it out, or leave out "
              + KOORDINATOR
              + "name for pods that may start one by one");
    }
    // A JSON list of gangs, each with its namespace.
    List<String> groups =
        pod.annotation(GROUPS).stream()
            .flatMap(text -> Stream.of(text.replaceAll("[\\[\\]\"\\s]", "").split(",", -1)))
            .filter(one -> !one.isEmpty() && !one.equals(pod.namespace() + "/" + name))
            .toList();
    if (!groups.isEmpty()) {
      throw new PodRefusedException(
          GROUPS
              + " is not read: gangs start each by itself; put all pods into one gang: "
              + groups);
    }
  }

  private static Optional<GangName> unsized(Optional<String> found, String group) {
    return found.filter(name -> !name.isEmpty()).map(name -> new GangName(name, 0, group));
  }

  private static Optional<GangName> sized(PodView pod, String name, String size) {
    Optional<String> found = pod.annotation(name).filter(text -> !text.isEmpty());
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
