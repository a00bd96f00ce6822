package dev.vgpu.fleet.simulation;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.Spot;
import dev.vgpu.fleet.placement.PlacementPolicy;
import dev.vgpu.fleet.placement.Workload;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.function.BiFunction;
import java.util.function.LongSupplier;

/**
 * A test in which requests arrive and end. They are drawn from a trace and arrive in a Poisson
 * process; their lifetimes are exponentially distributed. Requests that do not fit are dropped.
 * Allocation is the mean over time after the cluster has filled.
 */
public final class Churn {
  private final Trace trace;
  private final LongSupplier clock;
  private final double load;
  private final double filling;
  private final double counted;

  private record End(double time, Placement placement) {}

  /**
   * Creates the test.
   *
   * @param trace the cluster and its requests
   * @param clock nanoseconds, to time the decisions
   * @param load the offered load as a fraction of the capacity, for example 1.05
   * @param counted the measured time, in mean lifetimes
   */
  public Churn(Trace trace, LongSupplier clock, double load, double counted) {
    this.trace = trace;
    this.clock = clock;
    this.load = load;
    this.filling = 3;
    this.counted = counted;
  }

  /**
   * Runs the test.
   *
   * @param policies creates the policy for a fleet and its typical requests
   * @param seed determines the arrivals and the order of nodes
   * @return the results
   */
  public Outcome run(BiFunction<Fleet, Workload, PlacementPolicy> policies, long seed) {
    Random random = new Random(seed);
    List<NodeSpec> nodes = new ArrayList<>(trace.nodes());
    Collections.shuffle(nodes, random);
    Fleet fleet = new Fleet(nodes);
    List<Request> all = trace.jobs().stream().flatMap(job -> job.members().stream()).toList();
    double mean = all.stream().mapToInt(r -> r.shape().totalPercent()).average().orElse(1);
    double rate = load * fleet.capacityPercent() / mean;
    PlacementPolicy policy = policies.apply(fleet, Workload.of(all));
    Tally tally = new Tally(policy.name(), clock);
    PriorityQueue<End> ends = new PriorityQueue<>((a, b) -> Double.compare(a.time(), b.time()));
    double now = 0;
    double area = 0;
    boolean isCounting = false;
    for (int i = 0; now < filling + counted; i++) {
      double next = now - Math.log(1 - random.nextDouble()) / rate;
      while (!ends.isEmpty() && ends.peek().time() <= next) {
        End end = ends.remove();
        area += isCounting ? (end.time() - now) * used(fleet) : 0;
        now = end.time();
        fleet.release(end.placement());
      }
      area += isCounting ? (next - now) * used(fleet) : 0;
      now = next;
      if (!isCounting && now >= filling) {
        isCounting = true;
        tally.restart();
      }
      Request drawn = all.get(random.nextInt(all.size()));
      Request request = drawn.named(drawn.name() + "-" + i);
      double end = now - Math.log(1 - random.nextDouble());
      tally.decide(
          request,
          () -> {
            policy.settle(fleet);
            Optional<Spot> spot = policy.choose(fleet, request);
            spot.ifPresent(at -> ends.add(new End(end, fleet.place(request, at))));
            return spot.isPresent();
          });
    }
    return tally.outcome(100 * area / counted);
  }

  private static double used(Fleet fleet) {
    return 1 - (double) fleet.idlePercent() / fleet.capacityPercent();
  }
}
