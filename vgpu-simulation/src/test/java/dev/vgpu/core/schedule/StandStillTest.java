package dev.vgpu.core.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.VirtualNode;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How a GPU that stands still is detected and continues. */
class StandStillTest {
  private static final long MS = 1_000_000;

  /** The gate of processes, or of calls. */
  private static final class ProcessGate extends BusyGate {
    boolean runs;
    boolean works = true;
    boolean processes = true;

    @Override
    public boolean hasWork() {
      return works;
    }

    @Override
    public boolean shut() {
      open = false;
      return !runs;
    }

    @Override
    public long leastTurnNs() {
      return processes ? 10 * MS : 0;
    }
  }

  /** Records what it is told. */
  private static final class Told implements TurnObserver {
    final List<String> stoodStill = new ArrayList<>();

    @Override
    public void preempted(Tenant victim, Tenant by, int askedToEnd) {}

    @Override
    public void stoodStill(Tenant tenant, String what) {
      stoodStill.add(tenant.id() + ": " + what);
    }
  }

  private final Told told = new Told();
  private final SchedulerSettings settings = VirtualNode.settings(0);
  private final ProcessGate one = new ProcessGate();
  private final ProcessGate two = new ProcessGate();
  private final Tenant first = tenant("first", one);
  private final Tenant second = tenant("second", two);

  private static Tenant tenant(String id, ProcessGate gate) {
    return new Tenant(
        id, gate, VirtualNode.request(SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE));
  }

  @Test
  void workWhoseEndNobodyTellsIsAskedForAgain() {
    ShareScheduler scheduler = new ShareScheduler(settings, told, 0);
    scheduler.wanted(first, 0);
    scheduler.wanted(second, 0);
    scheduler.doWork(0);
    assertThat(one.open).isTrue();
    one.runs = true;
    long nowNs = 0;
    while (one.open) {
      nowNs = scheduler.nextWakeNs(); // the end of its turn
      scheduler.doWork(nowNs);
    }
    one.runs = false; // without reporting it
    long shutNs = nowNs;
    while (!two.open && nowNs < shutNs + 1_000 * MS) {
      nowNs = scheduler.nextWakeNs();
      scheduler.doWork(nowNs);
    }
    assertThat(two.open).isTrue();
    assertThat(nowNs - shutNs).isLessThanOrEqualTo(100 * MS);
    assertThat(told.stoodStill).hasSize(1).first().asString().contains("first");
  }

  @Test
  void aReportOfTheEndThatIsOnItsWayIsNotLost() {
    ShareScheduler scheduler = new ShareScheduler(settings, told, 0);
    scheduler.wanted(first, 0);
    scheduler.wanted(second, 0);
    scheduler.doWork(0);
    one.runs = true;
    long nowNs = 0;
    while (one.open) {
      nowNs = scheduler.nextWakeNs();
      scheduler.doWork(nowNs);
    }
    long asksAtNs = scheduler.nextWakeNs();
    one.runs = false;
    scheduler.doWork(asksAtNs);
    assertThat(two.open).isFalse();
    scheduler.drained(first, asksAtNs + MS);
    scheduler.doWork(asksAtNs + MS);
    assertThat(two.open).isTrue();
    assertThat(told.stoodStill).isEmpty();
  }

  @Test
  void workWhoseBeginningNobodyTellsIsFound() {
    ShareScheduler scheduler = new ShareScheduler(settings, told, 0);
    one.works = false;
    scheduler.paid(first, 0);
    scheduler.doWork(0);
    one.works = true;
    long nowNs = 0;
    while (!one.open && nowNs < 1_000 * MS) {
      nowNs = scheduler.nextWakeNs();
      scheduler.doWork(nowNs);
    }
    assertThat(nowNs).isLessThanOrEqualTo(100 * MS);
    assertThat(told.stoodStill).hasSize(1).first().asString().contains("first");
  }

  @Test
  void aProgramThatNeverReportsItsEndIsNotTheEventOfEachTurn() {
    ShareScheduler scheduler = new ShareScheduler(settings, told, 0);
    scheduler.wanted(first, 0);
    scheduler.wanted(second, 0);
    int turns = 0;
    for (long nowNs = 0; nowNs < 25_000 * MS; nowNs = scheduler.nextWakeNs()) {
      scheduler.doWork(nowNs);
      turns += one.open && !one.runs ? 1 : 0;
      one.runs = one.open; // it ends after its gate was shut, without a report
    }
    assertThat(turns).isGreaterThan(100);
    assertThat(told.stoodStill).hasSize(3);
    assertThat(told.stoodStill.get(1)).contains("earlier stalls: ");
  }

  @Test
  void workThatIsToldInTimeIsNotFound() {
    ShareScheduler scheduler = new ShareScheduler(settings, told, 0);
    one.works = false;
    scheduler.paid(first, 0);
    scheduler.doWork(0);
    one.works = true;
    long nowNs = scheduler.nextWakeNs();
    scheduler.doWork(nowNs);
    scheduler.wanted(first, nowNs + MS);
    scheduler.doWork(nowNs + MS);
    assertThat(one.open).isTrue();
    assertThat(told.stoodStill).isEmpty();
  }

  @Test
  void nobodyWithProcessesIsNotAsked() {
    ShareScheduler scheduler = new ShareScheduler(settings, told, 0);
    one.processes = false;
    scheduler.paid(first, 0);
    scheduler.doWork(0);
    assertThat(scheduler.nextWakeNs()).isEqualTo(TurnStepper.NEVER);
  }

  @Test
  void workThatRunsOnIsAwaited() {
    ShareScheduler scheduler = new ShareScheduler(settings, told, 0);
    scheduler.wanted(first, 0);
    scheduler.wanted(second, 0);
    scheduler.doWork(0);
    one.runs = true;
    long nowNs = 0;
    while (nowNs < 2_000 * MS) {
      nowNs = scheduler.nextWakeNs();
      scheduler.doWork(nowNs);
    }
    assertThat(two.open).isFalse();
    assertThat(told.stoodStill).isEmpty();
  }

  @Test
  void nobodyHavingTheTurnIsSeenAfterAWhile() {
    ShareLevel level = new ShareLevel(settings);
    ActiveGates gates =
        new ActiveGates(settings, told, new TurnLength(settings), level, new ShareLevel(settings));
    gates.begin(5 * MS);
    assertThat(gates.standStill.isTooLong(first, gates)).isFalse();
    assertThat(gates.wakeNs()).isEqualTo(105 * MS);
    gates.begin(104 * MS);
    assertThat(gates.standStill.isTooLong(first, gates)).isFalse();
    assertThat(gates.standStill.isTooLong(null, gates)).isFalse(); // all are at their cap now
    gates.begin(110 * MS);
    assertThat(gates.standStill.isTooLong(first, gates)).isFalse();
    gates.begin(210 * MS);
    assertThat(gates.standStill.isTooLong(first, gates)).isTrue();
  }
}
