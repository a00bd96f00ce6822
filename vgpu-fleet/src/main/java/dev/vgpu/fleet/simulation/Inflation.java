package dev.vgpu.fleet.simulation;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.Spot;
import dev.vgpu.fleet.placement.PlacementPolicy;
import dev.vgpu.fleet.placement.Workload;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.BiFunction;
import java.util.function.LongSupplier;

/**
 * The published test of FGD: the requests of a trace arrive in random order, some of them
 * repeatedly, until they have asked for 130 % of the cluster. Requests that do not fit are dropped;
 * none ends.
 */
public final class Inflation {
  private static final double ASKED = 1.3;

  private final Trace trace;
  private final LongSupplier clock;

  /**
   * Creates the test.
   *
   * @param trace the cluster and its requests
   * @param clock nanoseconds, to time the decisions
   */
  public Inflation(Trace trace, LongSupplier clock) {
    this.trace = trace;
    this.clock = clock;
  }

  /**
   * Runs the test.
   *
   * @param policies creates the policy for a fleet and its typical requests
   * @param seed determines the order of requests and of nodes
   * @return the results
   */
  public Outcome run(BiFunction<Fleet, Workload, PlacementPolicy> policies, long seed) {
    Random random = new Random(seed);
    List<NodeSpec> nodes = new ArrayList<>(trace.nodes());
    Collections.shuffle(nodes, random);
    Fleet fleet = new Fleet(nodes);
    List<Request> all = trace.jobs().stream().flatMap(job -> job.members().stream()).toList();
    PlacementPolicy policy = policies.apply(fleet, Workload.of(all));
    Tally tally = new Tally(policy.name(), clock);
    for (Request request : arrivals(all, fleet.capacityPercent(), random)) {
      tally.decide(
          request,
          () -> {
            policy.settle(fleet);
            Optional<Spot> spot = policy.choose(fleet, request);
            spot.ifPresent(at -> fleet.place(request, at));
            return spot.isPresent();
          });
    }
    return tally.outcome(100 - 100.0 * fleet.idlePercent() / fleet.capacityPercent());
  }

  private static List<Request> arrivals(List<Request> all, long capacity, Random random) {
    List<Request> arrivals = new ArrayList<>();
    List<Request> round = new ArrayList<>(all);
    long asked = 0;
    long until = Math.round(ASKED * capacity);
    Collections.shuffle(round, random);
    for (int i = 0; asked < until && i < round.size(); i++) {
      arrivals.add(round.get(i));
      asked += round.get(i).shape().totalPercent();
    }
    for (int i = 0; asked < until; i++) {
      Request again = round.get(random.nextInt(round.size()));
      arrivals.add(again.named(again.name() + "-again-" + i));
      asked += again.shape().totalPercent();
    }
    Collections.shuffle(arrivals, random);
    return arrivals;
  }
}
