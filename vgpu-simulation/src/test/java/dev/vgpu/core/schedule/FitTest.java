package dev.vgpu.core.schedule;

import static dev.vgpu.simulation.VirtualNode.MS;
import static dev.vgpu.simulation.VirtualNode.S;
import static dev.vgpu.simulation.VirtualNode.US;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.core.schedule.SchedulerState.Mode;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.VirtualNode;
import dev.vgpu.spi.GpuWork;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tenants that leave each other enough time have their gates open together. */
class FitTest {
  /** It launches a kernel each 50 us while the GPU lets it, and reports a part of that as use. */
  private static final class Program extends BusyGate {
    private static final double PERIOD_NS = 50_000;

    final double used;
    final boolean launchBound;
    long boundBeforeNs;
    double useNs;
    double launched;

    Program(double used, boolean launchBound) {
      this.used = used;
      this.launchBound = launchBound;
    }

    void pass(long ns, double pace) {
      if (open) {
        useNs += ns * used;
        launched += ns * pace / PERIOD_NS;
      }
    }

    @Override
    public long gpuTimeNs(long nowNs) {
      return (long) useNs;
    }

    @Override
    public GpuWork work() {
      return new GpuWork(
          (long) launched, boundBeforeNs + (launchBound ? (long) useNs : 0), 0, 0, 0);
    }

    @Override
    public boolean mayOverlap() {
      return true;
    }

    @Override
    public long leastTurnNs() {
      return 10 * MS;
    }
  }

  private final List<Program> programs = new ArrayList<>();
  private ShareScheduler scheduler =
      new ShareScheduler(VirtualNode.settings(0), (victim, by, asked) -> {}, 0);
  private long nowNs;
  private long togetherNs;

  private Program add(double used, boolean launchBound, SharePolicy policy, int percent) {
    Program program = new Program(used, launchBound);
    programs.add(program);
    scheduler.wanted(
        new Tenant(
            "t" + programs.size(),
            program,
            VirtualNode.request(policy, percent, PreemptionClass.NEARLINE)),
        nowNs);
    return program;
  }

  /**
   * @param pace what each program does beside others, as a part of what it does alone
   */
  private void run(long forNs, double pace) {
    for (long untilNs = nowNs + forNs; nowNs < untilNs; ) {
      int ignored = scheduler.doWork(nowNs);
      long nextNs = Math.max(nowNs + 1_000, Math.min(nowNs + MS, scheduler.nextWakeNs()));
      long open = programs.stream().filter(program -> program.open).count();
      togetherNs += open > 1 ? nextNs - nowNs : 0;
      programs.forEach(program -> program.pass(nextNs - nowNs, open > 1 ? pace : 1));
      nowNs = nextNs;
    }
  }

  private static double kept(Program program, long ofNs) {
    return program.launched * Program.PERIOD_NS / ofNs;
  }

  @Test
  void launchBoundProgramsThatPauseKeepTheirPace() {
    Program first = add(0.7, true, SharePolicy.BURST_SHARE, 50);
    Program second = add(0.8, true, SharePolicy.BURST_SHARE, 50);
    run(10 * S, 0.95);
    assertThat(scheduler.state().mode()).isEqualTo(Mode.OVERLAP);
    assertThat(scheduler.state().reason()).contains("fit beside each other");
    assertThat(kept(first, nowNs)).isGreaterThan(0.9);
    assertThat(kept(second, nowNs)).isGreaterThan(0.9);
  }

  @Test
  void unequalSharesMatterToNobodyWhoFits() {
    Program large = add(0.3, false, SharePolicy.BURST_SHARE, 75);
    Program small = add(0.3, false, SharePolicy.BURST_SHARE, 25);
    run(10 * S, 1);
    assertThat(kept(large, nowNs)).isGreaterThan(0.9);
    assertThat(kept(small, nowNs)).isGreaterThan(0.9);
  }

  @Test
  void thoseWhoGainNothingTakeTurnsAgainAndAreSeldomTriedAgain() {
    Program first = add(0.7, true, SharePolicy.BURST_SHARE, 50);
    Program second = add(0.7, true, SharePolicy.BURST_SHARE, 50);
    run(20 * S, 0.3);
    assertThat(scheduler.state().mode()).isEqualTo(Mode.STRICT);
    assertThat(togetherNs).as("time of trials").isBetween(50 * MS, 500 * MS);
    assertThat(kept(first, nowNs)).isGreaterThan(0.48);
    assertThat(kept(second, nowNs)).isGreaterThan(0.48);
  }

  @Test
  void aTrialEndsIfOneOfThemGetsLessThanItsTurnsWouldGive() {
    Program first = add(0.7, true, SharePolicy.BURST_SHARE, 90);
    Program second = add(0.7, true, SharePolicy.BURST_SHARE, 10);
    run(20 * S, 0.6); // for the second one, that would be six times as much
    assertThat(kept(first, nowNs)).isGreaterThan(0.88);
    assertThat(kept(second, nowNs)).isBetween(0.09, 0.12);
  }

  @Test
  void whoUsesTheGpuIsNotEvenTried() {
    Program first = add(0.6, false, SharePolicy.BURST_SHARE, 50);
    add(0.6, false, SharePolicy.BURST_SHARE, 50);
    run(10 * S, 1);
    assertThat(togetherNs).isLessThan(500 * MS); // at first all are taken to be busy
    assertThat(kept(first, nowNs)).isLessThan(0.6);
  }

  @Test
  void whatWasLaunchBoundUnderAnEarlierSchedulerDoesNotCount() {
    for (int i = 0; i < 2; i++) {
      Program program = new Program(0.6, false);
      program.boundBeforeNs = 100 * S;
      programs.add(program);
      scheduler.adopt(
          new Tenant(
              "adopted" + i,
              program,
              VirtualNode.request(SharePolicy.BURST_SHARE, 50, PreemptionClass.NEARLINE)),
          nowNs);
    }
    run(10 * S, 1);
    assertThat(togetherNs).isLessThan(500 * MS); // at first all are taken to be busy
  }

  @Test
  void fixedSharesAndStrictSettingsTakeTurns() {
    add(0.3, true, SharePolicy.FIXED_SHARE, 50);
    add(0.3, true, SharePolicy.BURST_SHARE, 50);
    run(3 * S, 1);
    assertThat(togetherNs).isZero();
    programs.clear();
    scheduler =
        new ShareScheduler(
            new SchedulerSettings(2 * MS, 50 * MS, 100 * US, 0, true, 30 * S),
            (victim, by, asked) -> {},
            nowNs);
    add(0.3, true, SharePolicy.BURST_SHARE, 50);
    add(0.3, true, SharePolicy.BURST_SHARE, 50);
    run(3 * S, 1);
    assertThat(togetherNs).isZero();
  }

  @Test
  void whoArrivesTakesTurnsUntilItsPaceIsKnown() {
    Program first = add(0.3, false, SharePolicy.BEST_EFFORT, 0);
    add(0.25, false, SharePolicy.BEST_EFFORT, 0);
    run(3 * S, 1);
    Program third = add(0.25, false, SharePolicy.BEST_EFFORT, 0);
    double before = first.launched;
    run(5 * S, 1);
    assertThat((first.launched - before) * Program.PERIOD_NS / (5 * S)).isGreaterThan(0.85);
    assertThat(kept(third, 5 * S)).isGreaterThan(0.85);
  }
}
