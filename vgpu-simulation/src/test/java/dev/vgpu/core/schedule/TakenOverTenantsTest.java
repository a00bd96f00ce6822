package dev.vgpu.core.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.VirtualNode;
import org.junit.jupiter.api.Test;

/** Tenants taken over from another scheduler, and tenants whose process was stopped. */
class TakenOverTenantsTest {
  private static final long MS = 1_000_000;

  /** A gate that the test controls. */
  private static final class PlayedGate extends BusyGate {
    boolean runs;
    boolean waits;
    boolean abandoned;
    boolean mayBeAbandoned;
    long leastTurnNs;
    long usedNs;
    int asked;

    @Override
    public boolean shut() {
      open = false;
      return !runs;
    }

    @Override
    public boolean hasWork() {
      return runs || waits;
    }

    @Override
    public long gpuTimeNs(long nowNs) {
      return usedNs;
    }

    @Override
    public boolean mayBeAbandoned() {
      return mayBeAbandoned;
    }

    @Override
    public boolean isAbandoned() {
      asked++;
      if (abandoned) {
        runs = false;
      }
      return abandoned;
    }

    @Override
    public long leastTurnNs() {
      return leastTurnNs;
    }
  }

  private final ShareScheduler scheduler =
      new ShareScheduler(VirtualNode.settings(0), (victim, by, asked) -> {}, 0);
  private final PlayedGate one = new PlayedGate();
  private final PlayedGate two = new PlayedGate();
  private final Tenant first = tenant("one", one);
  private final Tenant second = tenant("two", two);

  private static Tenant tenant(String id, PlayedGate gate) {
    return new Tenant(
        id, gate, VirtualNode.request(SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE));
  }

  @Test
  void workThatRunsStillHasTheTurnThatIsEnding() {
    one.runs = true;
    one.usedNs = 1_000 * MS;
    two.waits = true;
    scheduler.adopt(first, MS);
    scheduler.adopt(second, MS);
    scheduler.doWork(MS);
    assertThat(scheduler.holder()).isSameAs(first);
    assertThat(one.open).isFalse();
    assertThat(two.open).isFalse();
    one.runs = false;
    scheduler.drained(first, 2 * MS);
    scheduler.doWork(2 * MS);
    assertThat(scheduler.holder()).isSameAs(second);
    assertThat(two.open).isTrue();
  }

  @Test
  void whatWasUsedUnderAnotherSchedulerIsPaid() {
    one.usedNs = 60_000 * MS;
    one.waits = true;
    two.waits = true;
    scheduler.adopt(first, 0);
    scheduler.adopt(second, 0);
    assertThat(scheduler.lagNs(first)).isZero();
    assertThat(scheduler.lagNs(second)).isZero();
  }

  @Test
  void openHolderThatComesAgainHasToWaitForItsTurn() {
    one.waits = true;
    scheduler.wanted(first, 0);
    scheduler.doWork(0);
    assertThat(one.open).isTrue();
    scheduler.adopt(first, MS); // its process has reconnected
    scheduler.doWork(MS);
    assertThat(one.open).isTrue();
    assertThat(scheduler.holder()).isSameAs(first);
  }

  @Test
  void stoppedProcessLosesItsTurnAfterAMoment() {
    one.waits = true;
    one.mayBeAbandoned = true;
    scheduler.wanted(first, 0);
    scheduler.doWork(0);
    one.waits = false;
    one.runs = true;
    two.waits = true;
    scheduler.wanted(second, MS);
    scheduler.doWork(MS);
    long nowNs = scheduler.nextWakeNs(); // the end of its turn
    scheduler.doWork(nowNs);
    assertThat(one.open).isFalse();
    nowNs = scheduler.nextWakeNs();
    scheduler.doWork(nowNs);
    assertThat(one.asked).isEqualTo(1);
    assertThat(scheduler.holder()).isSameAs(first);
    one.abandoned = true;
    nowNs = scheduler.nextWakeNs();
    scheduler.doWork(nowNs);
    assertThat(scheduler.holder()).isSameAs(second);
    assertThat(nowNs).isLessThan(15 * MS);
  }

  @Test
  void workOfThisJvmIsAwaitedWithoutBeingAskedFor() {
    one.waits = true;
    scheduler.wanted(first, 0);
    scheduler.doWork(0);
    one.runs = true;
    two.waits = true;
    scheduler.wanted(second, MS);
    scheduler.doWork(3 * MS);
    assertThat(one.open).isFalse();
    assertThat(scheduler.nextWakeNs()).isEqualTo(TurnStepper.NEVER);
    assertThat(one.asked).isZero();
  }

  @Test
  void turnIsAsLongAsItsHandOverIsWorth() {
    one.waits = true;
    one.leastTurnNs = 7 * MS;
    two.waits = true;
    scheduler.wanted(first, 0);
    scheduler.wanted(second, 0);
    scheduler.doWork(0);
    assertThat(scheduler.holder()).isSameAs(first);
    // It is shut a little earlier, to allow for work that is then queued on the GPU.
    assertThat(scheduler.nextWakeNs()).isBetween(5 * MS, 7 * MS);
  }
}
