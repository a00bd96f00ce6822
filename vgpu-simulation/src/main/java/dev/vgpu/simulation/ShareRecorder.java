package dev.vgpu.simulation;

import java.util.ArrayList;
import java.util.List;

/**
 * Records which tenant used a GPU when, and what each was entitled to. Its memory does not grow
 * with the simulated time. Not thread-safe.
 */
final class ShareRecorder implements NodeObserver {
  /** A window begins at each multiple of this step. */
  static final long STEP_NS = 50_000_000;

  static final int STEPS_OF_WINDOW = 20;
  private static final int MOST_SPANS = 4_000;

  /** Shorter gaps in a tenant's work are not shown. */
  private static final long GAP_NS = 100_000;

  private final List<TenantRecord> records;
  private final List<TenantRecord> byNumber = new ArrayList<>();
  private final IdealDivision division;
  private final boolean[] works;
  private final double[] rates;
  private final int stepsOfPoint;
  private final List<MixResult.Span> spans = new ArrayList<>();
  private boolean counting;
  private long countedFromNs;
  private long nowNs;
  private boolean saturated;

  /** Time that has passed on the ideal GPU and is not booked yet. */
  private double pendingNs;

  private double dryInNs = Double.POSITIVE_INFINITY;
  private double lostNs;
  private long stepEndNs = STEP_NS;
  private int steps;
  private long busyNs;
  private long switches;
  private long preemptions;
  private int lastNumber = -1;
  private long spanFromNs;
  private long spanToNs;

  /**
   * Creates one.
   *
   * @param members the tenants of this GPU
   * @param indexes their indexes in the mix
   * @param offlineFloor the minimum part for offline tenants
   * @param stepsOfPoint the number of steps per point of a series
   */
  ShareRecorder(
      List<Mix.Member> members, List<Integer> indexes, double offlineFloor, int stepsOfPoint) {
    this.records = new ArrayList<>();
    for (int i = 0; i < members.size(); i++) {
      records.add(new TenantRecord(members.get(i), indexes.get(i), STEPS_OF_WINDOW));
    }
    this.division =
        new IdealDivision(members.stream().map(Mix.Member::request).toList(), offlineFloor);
    this.works = new boolean[members.size()];
    this.rates = new double[members.size()];
    this.stepsOfPoint = stepsOfPoint;
  }

  List<TenantRecord> records() {
    return records;
  }

  List<MixResult.Span> spans() {
    return spans;
  }

  long busyNs() {
    return busyNs;
  }

  double lostNs() {
    return lostNs;
  }

  long switches() {
    return switches;
  }

  long preemptions() {
    return preemptions;
  }

  /** Adds a tenant, which gets the next number on the node. */
  void joins(TenantRecord record, boolean endless, long atNs) {
    advance(atNs);
    settle();
    record.present = true;
    record.endless = endless;
    redivide();
    record.joinedNs = Math.max(atNs, countedFromNs);
    byNumber.add(record);
  }

  /** Removes a tenant. */
  void leaves(TenantRecord record, long atNs) {
    advance(atNs);
    settle();
    record.present = false;
    record.endless = false;
    record.backlogNs = 0;
    redivide();
  }

  /** Discards what was counted until now. The moment is the end of a step. */
  void startCounting(long atNs) {
    advance(atNs);
    counting = true;
    countedFromNs = atNs;
    busyNs = 0;
    lostNs = 0;
    switches = 0;
    preemptions = 0;
    steps = 0;
    records.forEach(record -> record.startCounting(atNs));
  }

  /** Ends the recording. */
  void end(long atNs) {
    advance(atNs);
    settle();
    closeSpan();
    for (TenantRecord record : records) {
      record.addStep();
      record.clearStep();
    }
  }

  @Override
  public void ran(VirtualGate gate, long fromNs, long toNs) {
    TenantRecord record = byNumber.get(gate.number());
    advance(fromNs);
    while (nowNs < toNs) {
      long untilNs = Math.min(toNs, stepEndNs);
      record.stepUsedNs += untilNs - nowNs;
      busyNs += untilNs - nowNs;
      passUntil(untilNs, false);
    }
    if (gate.number() != lastNumber) {
      switches++;
    }
    if (counting && spans.size() < MOST_SPANS) {
      span(gate.number(), fromNs, toNs);
    } else {
      lastNumber = gate.number();
    }
  }

  private void span(int number, long fromNs, long toNs) {
    if (number != lastNumber || fromNs > spanToNs + GAP_NS) {
      closeSpan();
      spanFromNs = fromNs;
    }
    lastNumber = number;
    spanToNs = toNs;
  }

  private void closeSpan() {
    if (lastNumber >= 0 && spanToNs > spanFromNs && spans.size() < MOST_SPANS) {
      spans.add(new MixResult.Span(byNumber.get(lastNumber).index, spanFromNs, spanToNs));
      spanFromNs = spanToNs;
    }
  }

  @Override
  public void arrived(VirtualGate gate, long workNs, long atNs) {
    advance(atNs);
    settle();
    TenantRecord record = byNumber.get(gate.number());
    boolean idle = record.backlogNs <= 0;
    record.backlogNs += workNs;
    if (idle) {
      redivide();
    } else {
      dryInNs = firstDryNs();
    }
  }

  @Override
  public void preempted(VirtualGate victim, long atNs) {
    byNumber.get(victim.number()).preemptions++;
    preemptions++;
  }

  private void redivide() {
    for (int i = 0; i < works.length; i++) {
      TenantRecord record = records.get(i);
      works[i] = record.endless || record.backlogNs > 0;
    }
    division.divide(works, rates);
    double sum = 0;
    for (double rate : rates) {
      sum += rate;
    }
    saturated = sum > 1 - 1e-9;
    dryInNs = firstDryNs();
  }

  /**
   * The time until an ideal GPU has finished all work of some tenant; infinite if it never does.
   */
  private double firstDryNs() {
    double leastNs = Double.POSITIVE_INFINITY;
    for (int i = 0; i < rates.length; i++) {
      TenantRecord record = records.get(i);
      if (rates[i] > 0 && !record.endless) {
        leastNs = Math.min(leastNs, record.backlogNs / rates[i]);
      }
    }
    return leastNs;
  }

  /** Records that the GPU was idle until now. */
  private void advance(long toNs) {
    while (nowNs < toNs) {
      passUntil(Math.min(toNs, stepEndNs), true);
    }
  }

  /**
   * Lets time pass, at most to the end of a step. Time in which the GPU was idle although a tenant
   * could have used it is lost: it counts for no tenant, and does not pass on the ideal GPU.
   */
  private void passUntil(long toNs, boolean idle) {
    double leftNs = toNs - nowNs;
    nowNs = toNs;
    while (leftNs > 0) {
      if (idle && saturated) {
        lostNs += leftNs;
        leftNs = 0;
      } else if (pendingNs + leftNs < dryInNs) {
        pendingNs += leftNs;
        leftNs = 0;
      } else {
        leftNs -= dryInNs - pendingNs;
        pendingNs = dryInNs;
        settle();
        redivide();
      }
    }
    if (nowNs == stepEndNs) {
      settle();
      endStep();
    }
  }

  /** Books what each tenant was entitled to until now. */
  private void settle() {
    if (pendingNs == 0) {
      return;
    }
    for (int i = 0; i < rates.length; i++) {
      TenantRecord record = records.get(i);
      double servedNs = rates[i] * pendingNs;
      record.stepEntitledNs += servedNs;
      record.stepUsableNs += record.present ? pendingNs : 0;
      if (!record.endless) {
        double leftNs = record.backlogNs - servedNs;
        record.backlogNs = leftNs < 0.5 ? 0 : leftNs;
      }
    }
    dryInNs -= pendingNs;
    pendingNs = 0;
  }

  private void endStep() {
    steps++;
    for (TenantRecord record : records) {
      if (counting) {
        record.endStep(stepEndNs, STEP_NS);
      }
      if (counting && steps % stepsOfPoint == 0) {
        record.endPoint(STEP_NS * stepsOfPoint);
      }
      record.clearStep();
    }
    stepEndNs += STEP_NS;
  }
}
