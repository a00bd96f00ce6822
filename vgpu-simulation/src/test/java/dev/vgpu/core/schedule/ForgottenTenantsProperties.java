package dev.vgpu.core.schedule;

import static dev.vgpu.simulation.VirtualNode.S;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.core.schedule.Mixes.Busy;
import dev.vgpu.simulation.GateModel;
import dev.vgpu.simulation.VirtualGate;
import dev.vgpu.simulation.VirtualNode;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.IntRange;

/** Closing every tenant restores the start state. */
@Tag("property")
class ForgottenTenantsProperties {
  @Provide
  Arbitrary<List<Busy>> mixes() {
    return Mixes.ofOneLevel();
  }

  private static List<Integer> add(VirtualNode node, List<Busy> mix, GateModel model) {
    List<Integer> numbers = new ArrayList<>();
    for (Busy busy : mix) {
      numbers.add(
          node.add(
              new VirtualGate("t" + numbers.size(), model, VirtualNode.backlog(busy.kernelNs())),
              busy.policy(),
              busy.percent(),
              busy.cls()));
    }
    return numbers;
  }

  @Property(tries = 40)
  void afterAllHaveGoneDecisionsAreAsOnTheFirstDay(
      @ForAll("mixes") List<Busy> before,
      @ForAll("mixes") List<Busy> mix,
      @ForAll @IntRange(max = 20) int floorPercent) {
    GateModel model = GateModel.calls(-1); // with processes, the device would keep state
    VirtualNode used = new VirtualNode(floorPercent);
    List<Integer> numbers = add(used, before, model);
    used.runUntil(S);
    numbers.forEach(used::remove);
    assertThat(used.scheduler().nextWakeNs()).isEqualTo(TurnStepper.NEVER);
    assertThat(used.scheduler().state().mode()).isEqualTo(SchedulerState.Mode.IDLE);
    used.runUntil(2 * S);
    used.decisions().clear();
    add(used, mix, model);
    used.runUntil(3 * S);

    VirtualNode fresh = new VirtualNode(floorPercent);
    fresh.runUntil(2 * S);
    add(fresh, mix, model);
    fresh.runUntil(3 * S);
    assertThat(used.decisions()).isEqualTo(fresh.decisions());
  }
}
