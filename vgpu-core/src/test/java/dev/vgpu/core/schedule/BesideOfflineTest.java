package dev.vgpu.core.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.core.simulate.VirtualNode;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;
import org.junit.jupiter.api.Test;

/** The division of the time that urgent work and the offline work before it both report. */
class BesideOfflineTest {
  private static final double SLICE_NS = 1_024_000;

  /** Reports what the test sets, and adds up what is given back. */
  private static final class SaidGate extends BusyGate {
    long busyUntilNs;
    double backNs;

    @Override
    public long busyUntilNs() {
      return busyUntilNs;
    }

    @Override
    public void othersUsed(double ns) {
      backNs += ns;
    }
  }

  /** A GPU with an urgent and an offline tenant. */
  private static final class Gpu {
    private final SchedulerSettings settings = VirtualNode.settings(0);
    private final ShareLevel upper = new ShareLevel(settings);
    private final ShareLevel lower = new ShareLevel(settings);
    private final BesideOffline beside = new BesideOffline();
    private final SaidGate urgentGate = new SaidGate();
    private final SaidGate offlineGate = new SaidGate();
    private final Tenant urgent = add(upper, urgentGate, PreemptionClass.ONLINE);
    private final Tenant offline = add(lower, offlineGate, PreemptionClass.OFFLINE);

    private static Tenant add(ShareLevel level, SaidGate gate, PreemptionClass preemptionClass) {
      Tenant tenant =
          new Tenant("t", gate, VirtualNode.request(SharePolicy.BURST_SHARE, 50, preemptionClass));
      level.join(tenant, 0);
      return tenant;
    }

    void says(boolean isUrgent, long usedNs, long untilNs) {
      (isUrgent ? urgentGate : offlineGate).busyUntilNs = untilNs;
      beside.told(isUrgent ? urgent : offline, (double) usedNs);
      beside.settle(upper, lower);
    }
  }

  @Test
  void timeThatBothReportCountsOnce() {
    Gpu gpu = new Gpu();
    gpu.says(false, 1_000_000, 1_000_000);
    gpu.says(true, 2_000_000, 2_500_000);
    gpu.says(false, 500_000, 1_500_000);
    // Common from 0.5 to 1.5 ms: a slice of the urgent tenant, whose work goes on.
    assertThat(gpu.offlineGate.backNs).isEqualTo(1_000_000);
    assertThat(gpu.urgentGate.backNs).isZero();
  }

  @Test
  void offlineWorkHasEverySecondSlice() {
    Gpu gpu = new Gpu();
    gpu.says(false, 1_000_000, 1_000_000);
    gpu.says(false, 1_500_000, 2_500_000);
    gpu.says(true, 2_000_000, 2_500_000);
    assertThat(gpu.offlineGate.backNs).isEqualTo(SLICE_NS);
    assertThat(gpu.urgentGate.backNs).isEqualTo(2_000_000 - SLICE_NS);
  }

  @Test
  void urgentWorkThatBeginsFirstKeepsAll() {
    Gpu gpu = new Gpu();
    gpu.says(true, 1_000_000, 1_000_000);
    gpu.says(false, 500_000, 1_400_000);
    gpu.says(true, 600_000, 1_600_000);
    assertThat(gpu.urgentGate.backNs).isZero();
    assertThat(gpu.offlineGate.backNs).isZero();
  }

  @Tag("property")
  @Property
  void nobodyGetsBackMoreThanItReports(@ForAll long seed) {
    Gpu gpu = new Gpu();
    Random random = new Random(seed);
    double urgentNs = 0;
    double offlineNs = 0;
    long untilNs = 0;
    for (int i = 0; i < 100; i++) {
      long usedNs = 1L + random.nextInt(random.nextBoolean() ? 10 : 3_000_000);
      // Some claim work in the future, some just enough to pass for one run without a pause.
      untilNs = random.nextInt(8) == 0 ? random.nextLong() >>> 2 : untilNs + usedNs + 5_000;
      boolean isUrgent = random.nextBoolean();
      urgentNs += isUrgent ? usedNs : 0;
      offlineNs += isUrgent ? 0 : usedNs;
      gpu.says(isUrgent, usedNs, untilNs);
      assertThat(gpu.urgentGate.backNs).isBetween(-1.0, urgentNs + 1);
      assertThat(gpu.offlineGate.backNs).isBetween(-1.0, offlineNs + 1);
    }
  }
}
