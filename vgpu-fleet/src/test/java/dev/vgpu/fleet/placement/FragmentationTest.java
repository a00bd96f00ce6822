package dev.vgpu.fleet.placement;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.Shape;
import dev.vgpu.fleet.model.SmallFleets;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.testing.TestSeed;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class FragmentationTest {
  /** The published definition, summed up shape by shape without tables. */
  private static double defined(Workload workload, NodeState state) {
    double sum = 0;
    for (int i = 0; i < workload.shapes().size(); i++) {
      Shape shape = workload.shapes().get(i);
      double part = 0;
      if (shape.gpus() == 0 || !state.fits(shape)) {
        part = state.idlePercent();
      } else {
        for (int slot = 0; slot < state.gpus(); slot++) {
          part += state.slotFits(slot, shape) ? 0 : state.freePercent(slot);
        }
      }
      sum += workload.odds().get(i) * part;
    }
    return sum;
  }

  @Test
  void tablesGiveWhatThePublishedDefinitionGives() {
    Random random = TestSeed.random();
    List<Request> usual = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      Request.Builder request = Request.builder("u" + i);
      request.host(1000 * random.nextInt(40), dev.vgpu.request.MemorySize.ZERO);
      switch (random.nextInt(3)) {
        case 0 -> request.wholeGpus(1 + random.nextInt(8));
        case 1 -> request.share(1 + random.nextInt(100));
        default -> request.preemptionClass(PreemptionClass.NEARLINE);
      }
      usual.add(request.build());
    }
    Workload workload = Workload.of(usual);
    Fragmentation fragmentation = new Fragmentation(workload);
    Fleet fleet = SmallFleets.alike(3, 8);
    PlacementPolicy policy = Policies.of("random", fleet, workload);
    for (int i = 0; i < 60; i++) {
      Request request = usual.get(random.nextInt(usual.size())).named("r" + i);
      policy.choose(fleet, request).ifPresent(at -> fleet.place(request, at));
      for (int node = 0; node < 3; node++) {
        assertThat((double) fragmentation.of(fleet.state(node)))
            .isCloseTo(defined(workload, fleet.state(node)), within(0.01));
      }
    }
  }

  @Test
  void idleGpusThatOfflineWorkCanHaveWholeAreNotFragments() {
    Request whole =
        Request.builder("w").preemptionClass(PreemptionClass.OFFLINE).wholeGpus(1).build();
    Fleet fleet = SmallFleets.alike(1, 8);
    assertThat(new Fragments(Workload.of(List.of(whole))).of(fleet)).isZero();
  }
}
