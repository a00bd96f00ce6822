package dev.vgpu.fleet.simulation;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.Spot;
import dev.vgpu.fleet.placement.PlacementPolicy;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.fleet.placement.Workload;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.LongSupplier;

/**
 * Measures decision times in a large fleet: while it fills, and while it is full and requests end
 * and arrive.
 */
public final class Scale {
  private static final long SEED = 5;

  private final Trace trace;
  private final LongSupplier clock;
  private final Random random = new Random(SEED);
  private final List<Placement> placed = new ArrayList<>();

  /**
   * Creates the test.
   *
   * @param trace the cluster and its typical requests
   * @param clock nanoseconds
   */
  public Scale(Trace trace, LongSupplier clock) {
    this.trace = trace;
    this.clock = clock;
  }

  /**
   * The results. Immutable.
   *
   * @param filling the decisions until the fleet was full
   * @param turning the later decisions, each after one request has ended
   * @param allocatedPercent the allocated GPU time at the end, in percent of all
   * @param fleet the fleet, kept so that its memory can be measured
   * @param policy the policy
   */
  public record Result(
      DecisionTimes filling,
      DecisionTimes turning,
      double allocatedPercent,
      Fleet fleet,
      PlacementPolicy policy) {}

  /**
   * Runs the test.
   *
   * @param policyName one of {@link Policies#names}
   * @param turns the number of requests after the fleet is full
   * @return the results
   */
  public Result run(String policyName, int turns) {
    Fleet fleet = new Fleet(trace.nodes());
    List<Request> usual = trace.jobs().stream().flatMap(job -> job.members().stream()).toList();
    PlacementPolicy policy = Policies.of(policyName, fleet, Workload.of(usual));
    DecisionTimes filling = new DecisionTimes();
    int refused = 0;
    int number = 0;
    while (refused < 200) {
      refused += decide(fleet, policy, usual, number++, filling) ? 0 : 1;
    }
    DecisionTimes turning = new DecisionTimes();
    for (int i = 0; i < turns; i++) {
      int gone = random.nextInt(placed.size());
      fleet.release(placed.get(gone));
      placed.set(gone, placed.get(placed.size() - 1));
      placed.remove(placed.size() - 1);
      decide(fleet, policy, usual, number++, turning);
    }
    double allocated = 100 - 100.0 * fleet.idlePercent() / fleet.capacityPercent();
    return new Result(filling, turning, allocated, fleet, policy);
  }

  private boolean decide(
      Fleet fleet, PlacementPolicy policy, List<Request> usual, int number, DecisionTimes times) {
    Request request = usual.get(random.nextInt(usual.size())).named("r" + number);
    long begin = clock.getAsLong();
    policy.settle(fleet);
    Optional<Spot> spot = policy.choose(fleet, request);
    spot.ifPresent(at -> placed.add(fleet.place(request, at)));
    times.add(clock.getAsLong() - begin);
    return spot.isPresent();
  }
}
