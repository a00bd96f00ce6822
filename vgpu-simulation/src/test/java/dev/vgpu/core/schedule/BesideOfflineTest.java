package dev.vgpu.core.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.GateModel;
import dev.vgpu.simulation.VirtualGate;
import dev.vgpu.simulation.VirtualNode;
import dev.vgpu.spi.GpuWork;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;
import org.junit.jupiter.api.Test;

/** The division of the time that urgent work and the offline work before it both report. */
class BesideOfflineTest {
  private static final long SLICE = 2_048_000;
  private static final long CHANGE = 140_000;

  /** Reports what the test sets, and adds up what is given back. */
  private static final class SaidGate extends BusyGate {
    long busyUntilNs;
    long launches;
    long stoppedNs;
    long stops;
    long stoppedAtNs;
    double backNs;

    @Override
    public GpuWork work() {
      return new GpuWork(launches, 0, stoppedNs, stops, stoppedAtNs);
    }

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
      tells(isUrgent, usedNs, untilNs);
      beside.settle(upper, lower);
    }

    void tells(boolean isUrgent, long usedNs, long untilNs) {
      (isUrgent ? urgentGate : offlineGate).busyUntilNs = untilNs;
      Tenant tenant = isUrgent ? urgent : offline;
      tenant.work = tenant.gate.work();
      beside.told(tenant, (double) usedNs, upper, lower);
    }
  }

  @Test
  void timeThatBothReportCountsOnce() {
    Gpu gpu = new Gpu();
    gpu.says(false, 1_000_000, 1_000_000);
    gpu.says(true, 2_000_000, 2_500_000);
    gpu.says(false, 500_000, 1_500_000);
    // Common from 0.5 to 1.5 ms: a slice of the urgent tenant, whose work goes on. A change came
    // before it.
    assertThat(gpu.offlineGate.backNs).isEqualTo(1_000_000 + CHANGE);
    assertThat(gpu.urgentGate.backNs).isZero();
  }

  @Test
  void offlineWorkHasEverySecondSlice() {
    Gpu gpu = new Gpu();
    gpu.says(false, 1_000_000, 1_000_000);
    // An urgent slice from 1.5 ms on, 0.5 ms of the offline work, and 0.2 ms of urgent work.
    long endNs = 1_500_000 + SLICE + CHANGE + 500_000;
    gpu.says(false, endNs - 1_000_000, endNs);
    gpu.says(true, endNs + CHANGE + 200_000 - 1_500_000, endNs + CHANGE + 200_000);
    assertThat(gpu.offlineGate.backNs).isEqualTo(SLICE + 2 * CHANGE);
    assertThat(gpu.urgentGate.backNs).isEqualTo(500_000 + 2 * CHANGE);
  }

  @Test
  void queuedOfflineWorkHasTheSecondSlice() {
    Gpu gpu = new Gpu();
    gpu.says(true, SLICE, SLICE);
    gpu.says(false, 500_000, SLICE + CHANGE + 500_000);
    assertThat(gpu.urgentGate.backNs).as("not said yet").isZero();
    gpu.says(true, 1_500_000, SLICE + 1_500_000);
    assertThat(gpu.urgentGate.backNs).isEqualTo(500_000 + 2 * CHANGE);
    assertThat(gpu.offlineGate.backNs).isZero();
  }

  @Test
  void queuedOfflineWorkSharesSlicesUntilTheUrgentWorkEnds() {
    Gpu gpu = new Gpu();
    long saidNs = 2 * SLICE + 2 * CHANGE + 300_000;
    gpu.says(true, saidNs, saidNs);
    gpu.says(false, 3 * SLICE, 4 * SLICE + CHANGE);
    assertThat(gpu.urgentGate.backNs).isEqualTo(SLICE + 2 * CHANGE);
    assertThat(gpu.offlineGate.backNs).isEqualTo(300_000 + 2 * CHANGE);
  }

  /** Queued offline work begins at the latest when the first urgent slice ends. */
  @Test
  void urgentWorkKeepsAllIfOfflineWorkBeginsLater() {
    Gpu gpu = new Gpu();
    gpu.says(true, 3 * SLICE, 3 * SLICE);
    gpu.says(false, 500_000, 2 * SLICE);
    assertThat(gpu.urgentGate.backNs).isZero();
    assertThat(gpu.offlineGate.backNs).isZero();
  }

  @Test
  void severalUrgentRunsMayWaitForOneReportOfOfflineWork() {
    Gpu gpu = new Gpu();
    gpu.says(false, 1_000_000, 1_000_000);
    gpu.says(true, 50_000, 1_250_000);
    gpu.says(true, 50_000, 2_350_000);
    gpu.says(false, 2_000_000, 3_000_000);
    assertThat(gpu.offlineGate.backNs).isEqualTo(100_000 + 4 * CHANGE);
    assertThat(gpu.urgentGate.backNs).isZero();
    gpu.says(false, 500_000, 3_500_000);
    assertThat(gpu.offlineGate.backNs).as("once").isEqualTo(100_000 + 4 * CHANGE);
  }

  @Test
  void settledTimeOfUrgentWorkCountsOnceIfMoreOfItIsTold() {
    Gpu gpu = new Gpu();
    SaidGate otherGate = new SaidGate();
    Tenant other = Gpu.add(gpu.lower, otherGate, PreemptionClass.OFFLINE);
    gpu.says(false, 1_000_000, 1_000_000);
    gpu.says(true, 500_000, 1_700_000);
    gpu.says(false, 1_000_000, 2_000_000);
    otherGate.busyUntilNs = 1_900_000;
    gpu.beside.told(other, 900_000, gpu.upper, gpu.lower);
    gpu.says(true, 400_000, 2_100_000);
    // Common from 1.7 to 1.9 ms. A change came before the urgent work.
    assertThat(otherGate.backNs).isEqualTo(200_000 + CHANGE);
  }

  @Test
  void offlineWorkSharesNoTimeInWhichItWasStopped() {
    Gpu gpu = new Gpu();
    gpu.says(false, 1_000_000, 1_000_000);
    gpu.says(true, 6_900_000, 8_400_000);
    gpu.offlineGate.stoppedAtNs = 1_600_000;
    gpu.offlineGate.stoppedNs = 7_000_000; // with the change back
    gpu.offlineGate.stops = 1;
    gpu.says(false, 1_000_000, 9_000_000); // from 1 to 1.6 ms, and from 8.6 to 9
    // A change and 0.1 ms before it was stopped.
    assertThat(gpu.offlineGate.backNs).isEqualTo(100_000 + CHANGE);
    assertThat(gpu.urgentGate.backNs).isZero();
  }

  @Test
  void ofSeveralStopsOnlyTheLengthIsKnown() {
    Gpu gpu = new Gpu();
    gpu.says(false, 1_000_000, 1_000_000);
    gpu.says(true, 2_000_000, 3_100_000);
    gpu.says(true, 2_000_000, 5_600_000);
    gpu.offlineGate.stoppedAtNs = 3_700_000;
    gpu.offlineGate.stoppedNs = 3_900_000; // from 1.15 to 3.15 and from 3.7 to 5.6 ms
    gpu.says(false, 1_000_000, 6_000_000);
    assertThat(gpu.offlineGate.backNs).as("of 4 ms of urgent work").isEqualTo(100_000);
    assertThat(gpu.urgentGate.backNs).isZero();
  }

  /** Their length would fit behind the beginning of the last one. */
  @Test
  void twoStopsAreNotTakenForOne() {
    Gpu gpu = new Gpu();
    gpu.says(false, 1_000_000, 1_000_000);
    gpu.says(true, 4_000_000, 5_100_000);
    gpu.offlineGate.stoppedAtNs = 5_400_000;
    gpu.offlineGate.stoppedNs = 8_000_000; // from 1 to 5.3 ms, and from 5.4 to 9.1 ms
    gpu.offlineGate.stops = 2;
    gpu.says(false, 5_000_000, 14_000_000);
    assertThat(gpu.offlineGate.backNs).isZero();
    assertThat(gpu.urgentGate.backNs).isZero();
  }

  @Test
  void offlineRunThatBeginsIsNotThatOfEarlierUrgentWork() {
    Gpu gpu = new Gpu();
    gpu.says(false, 1_000_000, 1_000_000);
    gpu.tells(true, 500_000, 1_300_000);
    gpu.tells(false, 400_000, 2_000_000);
    gpu.beside.settle(gpu.upper, gpu.lower);
    // Common from 0.8 to 1 ms. The next offline run began later.
    assertThat(gpu.offlineGate.backNs).isEqualTo(200_000 + CHANGE);
  }

  @Test
  void reportOfAnotherOfflineTenantInBetweenLosesNothing() {
    Gpu gpu = new Gpu();
    SaidGate otherGate = new SaidGate();
    Tenant other = Gpu.add(gpu.lower, otherGate, PreemptionClass.OFFLINE);
    gpu.says(true, 50_000, 1_250_000);
    gpu.says(true, 50_000, 2_350_000);
    otherGate.busyUntilNs = 2_800_000;
    gpu.beside.told(other, 300_000, gpu.upper, gpu.lower);
    gpu.says(false, 3_000_000, 3_000_000);
    assertThat(gpu.offlineGate.backNs).isEqualTo(100_000 + 4 * CHANGE);
    assertThat(otherGate.backNs).isZero();
  }

  /** A queued kernel would have waited for the whole first slice. */
  @Test
  void offlineWorkThatSeemsToBeginInTheFirstUrgentSliceWasReportedLate() {
    Gpu gpu = new Gpu();
    gpu.says(true, 500_000, 500_000);
    gpu.says(false, 2_000_000, 2_200_000);
    assertThat(gpu.urgentGate.backNs).isZero();
    assertThat(gpu.offlineGate.backNs).isZero();
  }

  @Test
  void offlineWorkThatTheLaneHeldHadNoTimeInCommonWithTheUrgentWork() {
    Gpu gpu = new Gpu();
    gpu.offlineGate.launches = 1;
    gpu.says(false, 1_000_000, 1_000_000);
    gpu.says(true, 500_000, 1_900_000);
    gpu.offlineGate.launches = 5;
    gpu.says(false, 4_000_000, 5_900_000); // from 1 to 1.26 ms, and from 2.16 ms on
    assertThat(gpu.urgentGate.backNs).isZero();
    assertThat(gpu.offlineGate.backNs).isZero();
  }

  /** The offline kernel began in a floor turn, while the urgent work that was launched ran on. */
  @Test
  void floorTurnSharesTheTimeOfUrgentWorkThatEnds() {
    Gpu gpu = new Gpu();
    gpu.offline.floorTurn = true;
    long endNs = 30_000_000 + SLICE + CHANGE + 700_000;
    gpu.says(true, endNs, endNs);
    gpu.says(false, endNs + CHANGE + 500_000 - 30_000_000, endNs + CHANGE + 500_000);
    assertThat(gpu.urgentGate.backNs).isEqualTo(SLICE + 2 * CHANGE);
    assertThat(gpu.offlineGate.backNs).isEqualTo(700_000 + 2 * CHANGE);
    assertThat(gpu.beside.takeFloorBackNs()).isEqualTo(700_000 + 2 * CHANGE);
    assertThat(gpu.beside.takeFloorBackNs()).as("once").isZero();
  }

  @Test
  void urgentWorkThatGoesOnSharesTimeWithTheNextOfflineRunToo() {
    Gpu gpu = new Gpu();
    gpu.says(false, 1_000_000, 1_000_000);
    gpu.says(true, 8_000_000, 8_500_000);
    gpu.offline.floorTurn = true;
    gpu.says(false, 1_000_000, 8_000_000); // settles the first run, and begins another one
    double backNs = gpu.urgentGate.backNs;
    gpu.says(true, 1_000_000, 9_500_000);
    gpu.says(false, 2_500_000, 10_500_000);
    assertThat(gpu.urgentGate.backNs).isGreaterThan(backNs);
  }

  /** If only the latest urgent run counted, the offline tenant would be booked for 99.9 %. */
  @Test
  void offlineTenantIsNotBookedForUrgentWorkBesideItsKernels() {
    VirtualNode node = new VirtualNode();
    add(node, PreemptionClass.ONLINE, 50, 1_000);
    add(node, PreemptionClass.OFFLINE, 1_000, 0);
    node.runUntil(5 * VirtualNode.S);
    for (int i = 0; i < 2; i++) {
      assertThat(100 * node.tenants().get(i).bookedNs / node.nowNs())
          .isCloseTo(100.0 * node.gate(i).servedNs() / node.nowNs(), within(0.3));
    }
  }

  /**
   * A report of offline work is of several kernels, before and after a pause in which urgent work
   * ran. If the pause were taken to be before all of them, the offline tenant would be booked for
   * 85 % of what it had.
   */
  @Test
  void offlineTenantIsBookedForWorkBeforeAndAfterAPause() {
    VirtualNode node = new VirtualNode();
    add(node, PreemptionClass.ONLINE, 500, 5_000);
    add(node, PreemptionClass.OFFLINE, 1_000, 0);
    node.runUntil(20 * VirtualNode.S);
    assertBooked(node, 0.01);
  }

  /**
   * The GPU changes to urgent work and back. If the changes were charged to offline tenants, those
   * with kernels of 0.2 ms would be booked for 102.1 % and 102.6 % of what they had.
   */
  @Test
  void changesAreChargedToNobodyBesideAnUrgentTenantAtItsCap() {
    for (long kernelUs : new long[] {100, 500, 1_000}) {
      for (long offlineUs : new long[] {200, 1_000}) {
        VirtualNode node = new VirtualNode();
        fixed(node, 40, kernelUs);
        burst(node, 70, offlineUs);
        burst(node, 30, offlineUs);
        node.runUntil(30 * VirtualNode.S);
        assertBooked(node, 0.01);
        double percent = 100.0 * node.gate(0).servedNs() / node.nowNs();
        assertThat(percent).isBetween(39.5, 40.2);
      }
    }
  }

  private static void fixed(VirtualNode node, int percent, long kernelUs) {
    long kernelNs = kernelUs * VirtualNode.US;
    int ignored =
        node.processes(SharePolicy.FIXED_SHARE, percent, PreemptionClass.ONLINE, kernelNs);
  }

  private static void burst(VirtualNode node, int percent, long kernelUs) {
    long kernelNs = kernelUs * VirtualNode.US;
    int ignored =
        node.processes(SharePolicy.BURST_SHARE, percent, PreemptionClass.OFFLINE, kernelNs);
  }

  private static void assertBooked(VirtualNode node, double accuracy) {
    for (int i = 0; i < node.gates().size(); i++) {
      assertThat(node.tenants().get(i).bookedNs / node.gate(i).servedNs())
          .as("tenant %d", i)
          .isCloseTo(1, within(accuracy));
    }
  }

  /**
   * The express lane holds offline work in the pauses, too. If that were silence, each offline
   * tenant would be booked for 25 %.
   */
  @Test
  void offlineTenantsThatTheLaneHoldsAreNotSilent() {
    VirtualNode node = new VirtualNode();
    add(node, PreemptionClass.ONLINE, 100, 100);
    add(node, PreemptionClass.OFFLINE, 1_000, 0);
    add(node, PreemptionClass.OFFLINE, 1_000, 50);
    node.runUntil(5 * VirtualNode.S);
    for (int i = 1; i < 3; i++) {
      assertThat(node.gate(i).servedNs()).isZero();
      assertThat(100 * node.tenants().get(i).bookedNs / node.nowNs()).isLessThan(0.1);
    }
  }

  private static void add(VirtualNode node, PreemptionClass of, int kernelUs, int pauseUs) {
    Pausing work = new Pausing(kernelUs * VirtualNode.US, pauseUs * VirtualNode.US);
    VirtualGate gate = new VirtualGate("t", GateModel.processes(), work);
    int ignored = node.add(gate, SharePolicy.BURST_SHARE, 30, of);
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
