package dev.vgpu.core.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.VirtualNode;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The division of the time in which two tenants both had work on the GPU. */
class EarlyTurnTest {
  private static final long SLICE_NS = 2_048_000;
  private static final long CHANGE_NS = 140_000;

  /** When work of the earlier tenant ends that has 0.5 ms after a slice of the later one. */
  private static final long ENDS_NS = SLICE_NS + CHANGE_NS + 500_000;

  /** What the later tenant then has reported if it had a slice and 0.6 ms. */
  private static final long TOLD_NS = ENDS_NS + CHANGE_NS + 600_000;

  /** Returns what the test sets. */
  private static final class SaidGate extends BusyGate {
    long busyUntilNs;

    @Override
    public long busyUntilNs() {
      return busyUntilNs;
    }
  }

  private final SchedulerSettings settings = VirtualNode.settings(0);
  private final ShareLevel level = new ShareLevel(settings);
  private final EarlyTurn early = new EarlyTurn();
  private final SaidGate earlierGate = new SaidGate();
  private final SaidGate laterGate = new SaidGate();
  private final Tenant earlier = add("earlier", earlierGate);
  private final Tenant later = add("later", laterGate);

  private Tenant add(String id, SaidGate gate) {
    Tenant tenant =
        new Tenant(
            id, gate, VirtualNode.request(SharePolicy.BURST_SHARE, 50, PreemptionClass.NEARLINE));
    level.join(tenant, 0);
    return tenant;
  }

  private void laterSays(long usedNs, long untilNs) {
    laterGate.busyUntilNs = untilNs;
    early.told(later, (double) usedNs);
    later.bookedNs += usedNs;
  }

  private void earlierEnds(long atNs) {
    earlierGate.busyUntilNs = atNs;
    early.ended(earlier, atNs);
    earlier.bookedNs = (double) atNs;
  }

  @Test
  void aTurnBeginsEarlyOnlyIfTheEndOfTheOneBeforeIsForeseen() {
    earlierGate.busyUntilNs = 1_000_000;
    earlier.draining = true;
    earlier.overrunNs = 10_000_000;
    earlier.endExpectedNs = 11_000_000;
    assertThat(EarlyTurn.mayBeginNs(earlier, List.of(earlier))).isBetween(10_000_000L, 11_000_000L);
    earlier.overrunOffNs = 1_000_000;
    assertThat(EarlyTurn.mayBeginNs(earlier, List.of(earlier))).isEqualTo(TurnStepper.NEVER);
  }

  @Test
  void timeThatBothSayTheyUsedIsDivided() {
    early.begin(earlier, later, 0);
    laterSays(TOLD_NS, TOLD_NS);
    earlierEnds(ENDS_NS);
    assertThat(early.settle(level)).isEqualTo(SLICE_NS + 500_000 + 3 * CHANGE_NS);
    assertThat(later.bookedNs).isEqualTo(600_000 + SLICE_NS);
    assertThat(earlier.bookedNs).as("the changes are charged to neither").isEqualTo(500_000);
    assertThat(early.settle(level)).as("once").isZero();
  }

  @Test
  void laterOneThatEndsFirstIsDividedAsWell() {
    early.begin(earlier, later, 0);
    long saidNs = 2 * SLICE_NS + 2 * CHANGE_NS + 300_000;
    laterSays(saidNs, saidNs);
    early.ended(later, saidNs + 100_000);
    assertThat(early.isEarlier(earlier)).as("it has the GPU to itself again").isFalse();
    assertThat(early.settle(level)).isEqualTo((double) saidNs + 3 * CHANGE_NS);
    // One slice of its own, one of the other's, and the rest of its work.
    assertThat(later.bookedNs).isEqualTo(SLICE_NS + 300_000);
    assertThat(earlier.bookedNs).isEqualTo(-(SLICE_NS + 300_000 + 3 * CHANGE_NS));
  }

  @Test
  void pausesOfTheLaterOneAreTheEarlierOnes() {
    early.begin(earlier, later, 0);
    laterSays(500_000, CHANGE_NS + 500_000);
    laterSays(TOLD_NS, 3_000_000 + TOLD_NS);
    earlierEnds(3_000_000 + ENDS_NS);
    assertThat(early.settle(level)).isEqualTo(500_000 + SLICE_NS + 500_000 + 6 * CHANGE_NS);
    // The first run was shorter than a slice. The pause after it began and ended with a change.
    assertThat(earlier.bookedNs).isEqualTo(2_500_000 - 3 * CHANGE_NS + 500_000);
    assertThat(later.bookedNs).isEqualTo(500_000 + SLICE_NS + 600_000);
  }

  @Test
  void laterOneMayStillTellOfTheCommonTimeUntilItHasToldOfLaterTimeOrEnded() {
    early.begin(earlier, later, 0);
    laterSays(300_000, 300_000 + CHANGE_NS);
    earlierEnds(1_500_000);
    assertThat(early.isUntold()).isTrue();
    assertThat(early.settle(level)).isZero();
    laterSays(300_000, 1_200_000);
    assertThat(early.settle(level)).as("it may have more").isZero();
    early.ended(later, 1_600_000);
    assertThat(early.settle(level)).isEqualTo(600_000 + 4 * CHANGE_NS);
    assertThat(earlier.bookedNs).isEqualTo(1_500_000 - 600_000 - 4 * CHANGE_NS);
    assertThat(later.bookedNs).isEqualTo(600_000);
  }

  @Test
  void whatTheLaterOneTellsOnlyInTheNextTurnIsDividedAsWell() {
    EarlyTurns turns = new EarlyTurns();
    Tenant third = add("third", new SaidGate());
    turns.begin(earlier, later, 0);
    earlierGate.busyUntilNs = ENDS_NS;
    turns.ended(earlier, ENDS_NS);
    assertThat(turns.settle(level)).as("nothing is known yet").isZero();
    turns.begin(later, third, ENDS_NS + 100_000);
    laterGate.busyUntilNs = TOLD_NS;
    turns.told(later, (double) TOLD_NS);
    assertThat(turns.settle(level)).isEqualTo(SLICE_NS + 500_000 + 3 * CHANGE_NS);
    assertThat(later.bookedNs).isEqualTo(-(500_000 + 2 * CHANGE_NS));
    assertThat(turns.isEarlier(later)).isTrue();
  }

  @Test
  void laterOneThatDrainsInTheNextTurnHasNoMoreToTell() {
    EarlyTurns turns = new EarlyTurns();
    Tenant third = add("third", new SaidGate());
    turns.begin(earlier, later, 0);
    laterGate.busyUntilNs = 1_200_000;
    turns.told(later, 1_200_000.0);
    earlierGate.busyUntilNs = 1_500_000;
    turns.ended(earlier, 1_500_000);
    turns.begin(later, third, 1_600_000);
    assertThat(turns.settle(level)).as("it may have more").isZero();
    turns.ended(later, 1_700_000);
    assertThat(turns.settle(level)).isEqualTo(1_200_000 + CHANGE_NS);
  }

  @Test
  void whatIsGivenBackToWhoHasNoWorkAnyMoreIsNotTakenFromTheOthers() {
    Tenant third = add("third", new SaidGate());
    early.begin(earlier, later, 0);
    laterSays(TOLD_NS, TOLD_NS);
    earlierEnds(ENDS_NS);
    level.leave(earlier, ENDS_NS + 100_000);
    double before = level.lag(later) + level.lag(third);
    assertThat(early.settle(level)).isPositive();
    assertThat(level.lag(later) + level.lag(third)).isCloseTo(before, within(1.0));
  }

  @Test
  void lagsSumToZeroOnceTheyAreBalanced() {
    level.charge(earlier, 20_000_000);
    level.charge(later, 30_000_000);
    level.balance();
    assertThat(level.lag(earlier) + level.lag(later)).isCloseTo(0, within(1.0));
    assertThat(level.lag(earlier) - level.lag(later)).isCloseTo(10_000_000, within(1.0));
  }

  @Test
  void turnIsSilentOnlyFromWhenItHasTheGpuToItself() {
    early.begin(earlier, later, 100);
    earlierEnds(1_500_000);
    assertThat(later.aloneSinceNs).isEqualTo(1_500_000);
    early.begin(earlier, later, 2_000_000);
    early.forget(earlier);
    assertThat(later.aloneSinceNs).isEqualTo(2_000_000);
  }

  @Test
  void laterOneHasItsWholeSlicesAndTheEarlierOneTheRest() {
    // One slice of the later tenant, then 0.3 ms of the earlier one, whose work ends there.
    double slice = SLICE_NS + CHANGE_NS;
    assertThat(EarlyTurn.laterNs(slice + 300_000)).isEqualTo(SLICE_NS);
    assertThat(EarlyTurn.laterNs(3 * slice + 300_000)).isEqualTo(2 * SLICE_NS);
    assertThat(EarlyTurn.laterNs(5 * slice + 1_800_000)).isEqualTo(3 * SLICE_NS);
    assertThat(EarlyTurn.changesNs(3 * slice + 300_000, true)).isEqualTo(3 * CHANGE_NS);
    assertThat(EarlyTurn.changesNs(2 * slice + 300_000, false)).isEqualTo(2 * CHANGE_NS);
    assertThat(EarlyTurn.changesNs(300_000, true)).isZero();
  }

  @Test
  void clocksThatAreTiedBadlyChangeLittle() {
    assertThat(EarlyTurn.laterNs(2 * SLICE_NS + CHANGE_NS + 40_000)).isEqualTo(SLICE_NS);
    assertThat(EarlyTurn.laterNs(SLICE_NS - 40_000)).isCloseTo((double) SLICE_NS, within(50_000.0));
    assertThat(EarlyTurn.laterNs(30_000)).isEqualTo(30_000);
    assertThat(EarlyTurn.betweenNs(30_000)).isZero();
    assertThat(EarlyTurn.betweenNs(2 * SLICE_NS + 2 * CHANGE_NS - 30_000)).isEqualTo(SLICE_NS);
  }
}
