package dev.vgpu.k8s.node.dra;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.request.GpuPart;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * The parts of a GPU in MIG mode as DRA devices that take from counters. Each memory slice is a
 * counter, so kube-scheduler allocates no two parts that overlap: https://kep.k8s.io/4815
 */
final class PartDevices {
  /** The attribute {@code type} of such a device. */
  static final String TYPE = "mig";

  /** The counters of a slice. */
  static final String SETS = "sharedCounters";

  /** What a device takes from counters. */
  static final String TAKEN = "consumesCounters";

  /** How many counter sets the API server accepts in a slice. */
  static final int MOST_SETS = 8;

  /** How many devices it accepts there if they take from counters. */
  static final int MOST_DEVICES = 64;

  private static final int LONGEST_NAME = 63;
  private static final String COMPUTE = "compute-slices";

  /** At most one instance of a GPU has these engines. */
  private static final String MEDIA = "media-engines";

  private PartDevices() {}

  /**
   * {@return the parts in the order in which they are to be allocated} Of one profile, the last
   * place comes first, because it leaves the most places for other profiles.
   */
  static List<GpuPart> inOrder(List<GpuPart> parts) {
    Map<String, Integer> order = new LinkedHashMap<>();
    parts.forEach(part -> order.putIfAbsent(part.profile(), order.size()));
    return parts.stream()
        .sorted(
            Comparator.comparing((GpuPart part) -> order.get(part.profile()))
                .thenComparing(Comparator.comparing(GpuPart::start).reversed()))
        .toList();
  }

  /** {@return a DNS label for a part, such as {@code gpu-…-mig-3g-40gb-4}} */
  static String name(String gpu, GpuPart part) {
    String profile =
        part.profile()
            .toLowerCase(Locale.ROOT)
            .replace("-", "-no-") // some profiles exist with +me and with -me
            .replaceAll("[^a-z0-9]+", "-");
    String end = "-mig-" + profile + "-" + part.start();
    return gpu.substring(0, Math.min(gpu.length(), LONGEST_NAME - end.length())) + end;
  }

  /** {@return a GPU's counters: as many of each as all its parts have} */
  static ObjectNode counters(String set, List<GpuPart> parts) {
    Map<String, Integer> all = new LinkedHashMap<>();
    for (GpuPart part : parts) {
      taken(part).forEach((name, amount) -> all.merge(name, amount, Math::max));
    }
    ObjectNode counters = JsonNodeFactory.instance.objectNode().put("name", set);
    put(counters, all);
    return counters;
  }

  /** Says what a device takes of its GPU's counters. */
  static void consume(ObjectNode device, String set, GpuPart part) {
    put(device.putArray(TAKEN).addObject().put("counterSet", set), taken(part));
  }

  private static Map<String, Integer> taken(GpuPart part) {
    Map<String, Integer> taken = new LinkedHashMap<>();
    for (int slice = part.start(); slice < part.start() + part.slices(); slice++) {
      taken.put("memory-slice-" + slice, 1);
    }
    taken.put(COMPUTE, part.computeSlices());
    if (part.profile().contains("+me")) {
      taken.put(MEDIA, 1);
    }
    return taken;
  }

  private static void put(ObjectNode into, Map<String, Integer> counters) {
    ObjectNode all = into.putObject("counters");
    counters.forEach((name, amount) -> all.putObject(name).put("value", amount.toString()));
  }
}
