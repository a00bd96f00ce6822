package dev.vgpu.nvml.mig.plan;

import dev.vgpu.nvml.mig.plan.MigPlan.Candidate;
import dev.vgpu.nvml.mig.plan.MigPlan.Move;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Finds places for GPU instances on the GPUs of one node. Stateless; safe for use by several
 * threads.
 */
public final class MigPlanner {
  /** Tolerance for different occupancies of the same worth; equal ones have identical values. */
  private static final double SAME = 1e-9;

  private MigPlanner() {}

  /**
   * {@return the start that keeps most options open on one GPU; empty if there is no legal one}
   *
   * @param gpu the GPU with its current instances
   * @param profile the instance's profile
   */
  public static Optional<Integer> start(MigGpu gpu, MigProfile profile) {
    return place(List.of(gpu), any -> Optional.of(profile)).map(plan -> plan.chosen().start());
  }

  /**
   * Finds the fullest GPU that has room, and on it the place that keeps most options open.
   *
   * @param gpus the GPUs that may be used
   * @param wanted the profile, in each GPU's own geometry; empty if it has none
   * @return the place and the reasons; empty if there is no legal place
   */
  public static Optional<MigPlan> place(
      List<MigGpu> gpus, Function<MigGpu, Optional<MigProfile>> wanted) {
    List<Candidate> candidates = new ArrayList<>();
    for (MigGpu gpu : gpus) {
      Optional<MigProfile> profile = wanted.apply(gpu);
      if (profile.isPresent()) {
        addCandidates(gpu, profile.get(), candidates);
      }
    }
    candidates.sort(ORDER);
    return candidates.isEmpty()
        ? Optional.empty()
        : Optional.of(new MigPlan(candidates.get(0), candidates, List.of()));
  }

  /**
   * First the GPU with the fewest options: empty GPUs are kept for requests that need them. Then
   * the place that leaves most. (Least loss over all GPUs would spread instances, and fit fewer.)
   */
  private static final Comparator<Candidate> ORDER =
      Comparator.comparingLong((Candidate one) -> Math.round(one.optionsBefore() / SAME))
          .thenComparing(one -> -Math.round(one.optionsAfter() / SAME))
          .thenComparing(Comparator.comparingInt(Candidate::start).reversed());

  private static void addCandidates(MigGpu gpu, MigProfile profile, List<Candidate> into) {
    MigOccupancy taken = gpu.occupancy();
    double before = MigOptions.of(gpu);
    for (int start : gpu.geometry().legalStarts(taken, profile)) {
      into.add(
          new Candidate(
              gpu.id(),
              profile,
              start,
              before,
              MigOptions.with(gpu, profile, start),
              remains(gpu.geometry(), taken.with(profile, start))));
    }
  }

  private static String remains(MigGeometry geometry, MigOccupancy taken) {
    return geometry.profiles().stream()
        .filter(profile -> !profile.hasMedia())
        .map(profile -> profile.name() + " " + geometry.legalStarts(taken, profile).size())
        .collect(Collectors.joining(", "));
  }

  // ---- making room

  /**
   * Finds the fewest instances to move so that a request fits. A moved instance is destroyed and
   * created again, so its holder must consent; only movable ones are considered.
   *
   * @param gpus the GPUs that may be used
   * @param wanted the profile, in each GPU's own geometry; empty if it has none
   * @return the place and the moves; without moves if the request already fits
   */
  public static Optional<MigPlan> makeRoom(
      List<MigGpu> gpus, Function<MigGpu, Optional<MigProfile>> wanted) {
    Optional<MigPlan> asItIs = place(gpus, wanted);
    if (asItIs.isPresent()) {
      return asItIs;
    }
    MigPlan best = null;
    for (MigGpu gpu : gpus) {
      Optional<MigProfile> profile = wanted.apply(gpu);
      List<MigInstance> movable = gpu.instances().stream().filter(MigInstance::movable).toList();
      for (int set = 1; profile.isPresent() && set < 1 << movable.size(); set++) {
        if (best != null && Integer.bitCount(set) > best.moves().size()) {
          continue;
        }
        MigPlan plan = with(gpus, gpu, profile.get(), chosen(movable, set));
        if (plan != null && (best == null || isBetter(plan, best))) {
          best = plan;
        }
      }
    }
    return Optional.ofNullable(best);
  }

  private static List<MigInstance> chosen(List<MigInstance> movable, int set) {
    List<MigInstance> chosen = new ArrayList<>();
    for (int i = 0; i < movable.size(); i++) {
      if ((set >> i & 1) != 0) {
        chosen.add(movable.get(i));
      }
    }
    // Largest first, because they are the hardest to place.
    chosen.sort(Comparator.comparingInt(MigInstance::memorySlices).reversed());
    return chosen;
  }

  private static boolean isBetter(MigPlan one, MigPlan other) {
    Comparator<MigPlan> order =
        Comparator.comparingInt((MigPlan plan) -> plan.moves().size())
            .thenComparingInt(
                plan -> plan.moves().stream().mapToInt(m -> m.instance().memorySlices()).sum())
            .thenComparing(plan -> -plan.chosen().optionsAfter());
    return order.compare(one, other) < 0;
  }

  /** {@return a plan that moves exactly these instances of one GPU, or null} */
  private static @Nullable MigPlan with(
      List<MigGpu> gpus, MigGpu gpu, MigProfile profile, List<MigInstance> moved) {
    List<Candidate> places = new ArrayList<>();
    addCandidates(gpu.without(moved), profile, places);
    places.sort(ORDER);
    for (Candidate place : places) {
      Map<MigGpu, MigOccupancy> taken = new LinkedHashMap<>();
      gpus.forEach(other -> taken.put(other, other.occupancy()));
      taken.put(gpu, gpu.without(moved).occupancy().with(profile, place.start()));
      List<Move> moves = new ArrayList<>();
      if (rehouse(gpu, moved, taken, moves)) {
        return new MigPlan(place, List.of(place), moves);
      }
    }
    return null;
  }

  /** Finds places for the moved instances one by one, with backtracking. */
  private static boolean rehouse(
      MigGpu from, List<MigInstance> moved, Map<MigGpu, MigOccupancy> taken, List<Move> moves) {
    if (moves.size() == moved.size()) {
      return true;
    }
    MigInstance instance = moved.get(moves.size());
    for (MigGpu to : List.copyOf(taken.keySet())) {
      Optional<MigProfile> kind = to.geometry().profile(instance.profileId());
      if (kind.isEmpty() || !to.geometry().equals(from.geometry())) {
        continue;
      }
      MigOccupancy before = Objects.requireNonNull(taken.get(to));
      for (int start : to.geometry().legalStarts(before, kind.get())) {
        taken.put(to, before.with(kind.get(), start));
        moves.add(new Move(instance, from.id(), to.id(), start));
        if (rehouse(from, moved, taken, moves)) {
          return true;
        }
        moves.remove(moves.size() - 1);
        taken.put(to, before);
      }
    }
    return false;
  }
}
