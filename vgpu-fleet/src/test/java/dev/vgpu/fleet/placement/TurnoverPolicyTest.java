package dev.vgpu.fleet.placement;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.gang.FleetQueue;
import dev.vgpu.fleet.gang.Terms;
import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.SmallFleets;
import dev.vgpu.fleet.model.Spot;
import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntPredicate;
import org.junit.jupiter.api.Test;

class TurnoverPolicyTest {
  private static final int FILLING = 0;
  private static final int TURNING = 1;

  /** Node 0 is for a fleet that fills, node 1 for one in which work ends. */
  private final Fleet fleet = SmallFleets.alike(2, 8);

  private final PlacementPolicy policy = new TurnoverPolicy(only(FILLING), only(TURNING));
  private final List<Placement> placed = new ArrayList<>();
  private int numbers;

  private static PlacementPolicy only(int node) {
    PlacementPolicy bestFit =
        Policies.of("best-fit", SmallFleets.alike(2, 8), Workload.of(List.of()));
    return new PlacementPolicy() {
      @Override
      public String name() {
        return "node " + node;
      }

      @Override
      public Optional<Spot> choose(Fleet fleet, Request request) {
        return choose(fleet, request, any -> true);
      }

      @Override
      public Optional<Spot> choose(Fleet fleet, Request request, IntPredicate allowed) {
        return bestFit.choose(fleet, request, one -> one == node && allowed.test(one));
      }
    };
  }

  private Request next() {
    return Request.builder("r" + numbers++).share(1).build();
  }

  private int chosen() {
    return policy.choose(fleet, next()).orElseThrow().node();
  }

  private void place() {
    policy.settle(fleet);
    Request request = next();
    placed.add(fleet.place(request, policy.choose(fleet, request).orElseThrow()));
  }

  private void place(int count) {
    for (int i = 0; i < count; i++) {
      place();
    }
  }

  private void release() {
    fleet.release(placed.remove(0));
  }

  /** Releases the oldest requests, and lets the policy take note after each of them. */
  private void releaseOneByOne(int count) {
    for (int i = 0; i < count; i++) {
      release();
      policy.settle(fleet);
    }
  }

  /** The policy still fills. After two more releases, it chooses for a fleet in which work ends. */
  private void assertTwoMoreChangeTheChoice() {
    assertThat(chosen()).isEqualTo(FILLING);
    release();
    release();
    policy.settle(fleet);
    assertThat(chosen()).isEqualTo(TURNING);
  }

  @Test
  void theChoiceChangesOnceMoreThanHalfHasEnded() {
    place(20);
    releaseOneByOne(9);
    assertTwoMoreChangeTheChoice();
  }

  /** What would fit without the running work is found out by taking it away for a while. */
  @Test
  void aTrialChangesNoLaterChoice() {
    place(20);
    for (int i = 0; i < 5; i++) {
      release();
    }
    policy.settle(fleet);
    for (int i = 0; i < 3000; i++) {
      placed.forEach(fleet::undo);
      assertThat(chosen()).as("trial %s", i).isEqualTo(FILLING);
      placed.forEach(fleet::restore);
    }
    assertThat(chosen()).isEqualTo(FILLING);
    policy.settle(fleet);
    assertThat(chosen()).isEqualTo(FILLING);
    releaseOneByOne(4);
    assertTwoMoreChangeTheChoice();
  }

  @Test
  void whatIsEvictedHasNotEnded() {
    place(700);
    placed.forEach(fleet::undo);
    policy.settle(fleet);
    assertThat(chosen()).isEqualTo(FILLING);
  }

  @Test
  void theQueueTellsItWhatHasEnded() {
    FleetQueue queue = new FleetQueue(fleet, policy);
    assertThat(start(queue, "a")).isEqualTo(FILLING);
    assertThat(start(queue, "b")).isEqualTo(FILLING);
    queue.end("a");
    queue.end("b");
    assertThat(start(queue, "c")).isEqualTo(TURNING);
  }

  private int start(FleetQueue queue, String name) {
    queue.add(
        Terms.of(name, 1, PreemptionClass.NEARLINE, 1), Request.builder(name).share(10).build());
    assertThat(queue.decide(0)).hasSize(1);
    return fleet.placement(name).orElseThrow().node();
  }
}
