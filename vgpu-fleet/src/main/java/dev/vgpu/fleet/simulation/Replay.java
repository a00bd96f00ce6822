package dev.vgpu.fleet.simulation;

import dev.vgpu.fleet.gang.Decision;
import dev.vgpu.fleet.gang.FleetQueue;
import dev.vgpu.fleet.gang.Terms;
import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.placement.PlacementPolicy;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.fleet.placement.Workload;
import dev.vgpu.request.PreemptionClass;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.function.LongSupplier;

/**
 * Replays a trace through the queue of a fleet, in virtual time. Jobs wait until they fit, in order
 * of class and arrival, gangs as a whole.
 */
public final class Replay {
  private final Trace trace;
  private final LongSupplier clock;

  private record End(double timeS, String job, int run) {}

  /**
   * Creates a replay.
   *
   * @param trace the cluster and the jobs
   * @param clock nanoseconds, to time the decisions
   */
  public Replay(Trace trace, LongSupplier clock) {
    this.trace = trace;
    this.clock = clock;
  }

  /**
   * Runs until the last job has ended.
   *
   * @param policyName one of {@link Policies#names}
   * @return the results
   */
  public ReplayResult run(String policyName) {
    Fleet fleet = new Fleet(trace.nodes());
    List<Request> all = trace.jobs().stream().flatMap(job -> job.members().stream()).toList();
    PlacementPolicy policy = Policies.of(policyName, fleet, Workload.of(all));
    FleetQueue queue = new FleetQueue(fleet, policy);
    ReplayTally tally = new ReplayTally(policyName, fleet, Workload.of(all));
    Map<String, Job> jobs = new HashMap<>();
    Map<String, Integer> runs = new HashMap<>();
    PriorityQueue<End> ends = new PriorityQueue<>((a, b) -> Double.compare(a.timeS(), b.timeS()));
    int next = 0;
    while (next < trace.jobs().size() || !ends.isEmpty()) {
      double now =
          Math.min(
              next < trace.jobs().size() ? trace.jobs().get(next).arrivalS() : Double.MAX_VALUE,
              ends.isEmpty() ? Double.MAX_VALUE : ends.peek().timeS());
      tally.advance(now);
      while (!ends.isEmpty() && ends.peek().timeS() <= now) {
        End end = ends.remove();
        if (runs.getOrDefault(end.job(), 0) == end.run()) {
          queue.end(end.job());
        }
      }
      while (next < trace.jobs().size() && trace.jobs().get(next).arrivalS() <= now) {
        Job job = trace.jobs().get(next++);
        jobs.put(job.name(), job);
        add(queue, job, tally);
      }
      long begin = clock.getAsLong();
      List<Decision> decisions = queue.decide(now);
      tally.decided(clock.getAsLong() - begin);
      for (Decision decision : decisions) {
        Job job = jobs.get(decision.gang());
        if (job != null && decision instanceof Decision.Start) {
          int run = runs.merge(job.name(), 1, Integer::sum);
          ends.add(new End(now + job.runS(), job.name(), run));
          tally.started(job, now);
        } else if (job != null) {
          runs.merge(job.name(), 1, Integer::sum);
          tally.evicted();
        }
      }
    }
    return tally.result(queue.waiting().size());
  }

  private static void add(FleetQueue queue, Job job, ReplayTally tally) {
    PreemptionClass preemptionClass = job.members().get(0).preemptionClass();
    Terms terms = Terms.of(job.name(), job.members().size(), preemptionClass, job.runS());
    try {
      job.members().forEach(member -> queue.add(terms, member));
    } catch (IllegalArgumentException e) {
      queue.end(job.name());
      tally.refused();
    }
  }
}
