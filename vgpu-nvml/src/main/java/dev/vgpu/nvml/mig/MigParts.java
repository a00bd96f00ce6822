package dev.vgpu.nvml.mig;

import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigGpu;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.GpuPart;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/** The parts that requests can name: instances of a profile, at any place or at a given one. */
final class MigParts {
  private MigParts() {}

  /** {@return all parts of a GPU, the smallest profile first} */
  static List<GpuPart> of(MigGeometry geometry) {
    List<GpuPart> parts = new ArrayList<>();
    for (MigProfile profile : geometry.profiles()) {
      for (int start : profile.starts()) {
        parts.add(
            new GpuPart(
                profile.name(),
                start,
                profile.memorySlices(),
                profile.computeSlices(),
                profile.memory(),
                profile.multiprocessors()));
      }
    }
    parts.sort(
        Comparator.comparingInt(GpuPart::computeSlices)
            .thenComparingInt(GpuPart::slices)
            .thenComparing(GpuPart::profile)
            .thenComparingInt(GpuPart::start));
    return List.copyOf(parts);
  }

  /** {@return the profiles that may serve a request, the smallest first} A place is kept. */
  static List<MigProfile> wanted(MigGeometry geometry, VirtualGpuRequest request) {
    if (request.part().isEmpty()) {
      return geometry.enough(request.memory(), request.computePercent().orElse(0));
    }
    return unable(geometry, request).isPresent()
        ? List.of()
        : at(geometry, request.part().get()).stream().toList();
  }

  /** {@return why no instance could ever serve a request; empty if one could} */
  static Optional<String> unable(MigGeometry geometry, VirtualGpuRequest request) {
    if (request.part().isEmpty()) {
      return wanted(geometry, request).isEmpty()
          ? Optional.of("no MIG profile is large enough")
          : Optional.empty();
    }
    String part = request.part().get();
    Optional<MigProfile> profile = named(geometry, part);
    if (profile.isEmpty()) {
      return Optional.of("has no part " + part + ", only " + names(geometry.profiles()));
    }
    if (at(geometry, part).isEmpty()) {
      return Optional.of("has no part " + part + ", only " + names(List.of(profile.get())));
    }
    int percent = request.computePercent().orElse(0);
    return profile.get().isEnough(request.memory(), percent, geometry.computeSlices())
        ? Optional.empty()
        : Optional.of(
            "part "
                + profile.get().name()
                + " has only "
                + profile.get().memory()
                + " and "
                + profile.get().computeSlices()
                + " of "
                + geometry.computeSlices()
                + " compute slices");
  }

  /** {@return why there is no place now for what a request asks} */
  static String lack(MigState state, MigGeometry geometry, VirtualGpuRequest request) {
    Optional<MigProfile> profile = request.part().flatMap(part -> named(geometry, part));
    if (profile.isEmpty()) {
      return "no legal placement for a MIG instance of this size";
    }
    MigGpu planned = state.planned(Map.of(), Set.of()).orElseThrow();
    List<Integer> free = geometry.legalStarts(planned.occupancy(), profile.get());
    return "has no room for part "
        + request.part().get()
        + " now"
        + (free.isEmpty()
            ? ", nor for any of this profile"
            : ", only for " + name(profile.get(), free));
  }

  /** {@return whether a lease of a request must stay where it is} */
  static boolean isPinned(VirtualGpuRequest request) {
    return request.part().filter(part -> part.contains(":")).isPresent();
  }

  private static Optional<MigProfile> named(MigGeometry geometry, String part) {
    String name = part.split(":", -1)[0];
    return geometry.profiles().stream()
        .filter(profile -> profile.name().equalsIgnoreCase(name))
        .findFirst();
  }

  /** {@return the profile of a part, with no start but the one that is asked for, if one is} */
  private static Optional<MigProfile> at(MigGeometry geometry, String part) {
    Optional<MigProfile> profile = named(geometry, part);
    int colon = part.indexOf(':');
    return colon < 0
        ? profile
        : profile.flatMap(each -> each.at(Integer.parseInt(part.substring(colon + 1))));
  }

  private static String names(List<MigProfile> profiles) {
    return profiles.stream()
        .map(profile -> name(profile, profile.starts()))
        .collect(Collectors.joining(", "));
  }

  /** {@return for example {@code 3g.40gb:0|4}} */
  private static String name(MigProfile profile, List<Integer> starts) {
    return profile.name()
        + ":"
        + starts.stream().map(String::valueOf).collect(Collectors.joining("|"));
  }
}
