package dev.vgpu.core.simulate;

import java.util.ArrayList;
import java.util.List;

/**
 * Sees who used a GPU when, beside what each was entitled to. Its memory does not grow with the
 * simulated time. Not thread-safe.
 */
final class ShareRecorder implements NodeObserver {
  /** Windows are looked at from each of these steps. */
  static final long STEP_NS = 50_000_000;

  static final int STEPS_OF_WINDOW = 20;
  private static final int MOST_SPANS = 4_000;

  /** Shorter gaps in a tenant's work are not shown. */
  private static final long GAP_NS = 100_000;

  private final List<TenantRecord> records;
  private final List<TenantRecord> byNumber = new ArrayList<>();
  private final IdealDivision division;
  private final boolean[] works;
  private final long[] allUsed = new long[STEPS_OF_WINDOW];
  private final double[] allEntitled = new double[STEPS_OF_WINDOW];
  private final double[] rates;
  private final int stepsOfPoint;
  private final List<MixResult.Span> spans = new ArrayList<>();
  private boolean counting;
  private long countedFromNs;
  private double nowNs;
  private long stepEndNs = STEP_NS;
  private int steps;
  private long windowUsedNs;
  private double windowEntitledNs;
  private long busyNs;
  private long switches;
  private long preemptions;
  private int lastNumber = -1;
  private long spanFromNs;
  private long spanToNs;

  /**
   * Makes one.
   *
   * @param members the tenants of this GPU
   * @param indexes their numbers in the mix
   * @param offlineFloor the least part for offline tenants
   * @param stepsOfPoint how many steps a point of a series has
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

  long switches() {
    return switches;
  }

  long preemptions() {
    return preemptions;
  }

  /** A tenant comes: it gets the next number on the node. */
  void joins(TenantRecord record, boolean endless, long atNs) {
    advance(atNs);
    record.present = true;
    record.endless = endless;
    redivide();
    record.joinedNs = Math.max(atNs, countedFromNs);
    byNumber.add(record);
  }

  /** A tenant goes. */
  void leaves(TenantRecord record, long atNs) {
    advance(atNs);
    record.present = false;
    record.endless = false;
    record.backlogNs = 0;
    redivide();
  }

  /** What happened until now is not counted. The moment is the end of a step. */
  void startCounting(long atNs) {
    advance(atNs);
    counting = true;
    countedFromNs = atNs;
    busyNs = 0;
    switches = 0;
    preemptions = 0;
    steps = 0;
    records.forEach(record -> record.startCounting(atNs));
  }

  /** The simulation is over. */
  void end(long atNs) {
    advance(atNs);
    closeSpan();
    for (TenantRecord record : records) {
      record.usedNs += record.stepUsedNs;
      record.entitledNs += record.stepEntitledNs;
      record.stepUsedNs = 0;
      record.stepEntitledNs = 0;
    }
  }

  @Override
  public void ran(VirtualGate gate, long fromNs, long toNs) {
    TenantRecord record = byNumber.get(gate.number());
    long beginNs = fromNs;
    while (toNs > stepEndNs) {
      record.stepUsedNs += stepEndNs - beginNs;
      beginNs = stepEndNs;
      advance(stepEndNs);
    }
    record.stepUsedNs += toNs - beginNs;
    busyNs += toNs - fromNs;
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
    TenantRecord record = byNumber.get(gate.number());
    boolean idle = record.backlogNs <= 0;
    record.backlogNs += workNs;
    if (idle) {
      redivide();
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
  }

  /** Books what each is entitled to until a moment. */
  private void advance(long toNs) {
    while (true) {
      double passedNs = Math.min(toNs, stepEndNs) - nowNs;
      int dry = firstDry(passedNs);
      if (dry >= 0) {
        passedNs = records.get(dry).backlogNs / rates[dry];
      }
      if (passedNs > 0) {
        pass(passedNs);
      }
      if (dry >= 0) {
        records.get(dry).backlogNs = 0;
        redivide();
      } else if (nowNs < stepEndNs) {
        return;
      } else {
        endStep();
        if (nowNs >= toNs) {
          return;
        }
      }
    }
  }

  /** Whose work an ideal GPU would have done first, within this time; -1: nobody's. */
  private int firstDry(double withinNs) {
    int first = -1;
    double leastNs = withinNs;
    for (int i = 0; i < rates.length; i++) {
      TenantRecord record = records.get(i);
      if (rates[i] > 0 && !record.endless) {
        double dryNs = record.backlogNs / rates[i];
        if (dryNs < leastNs || (first < 0 && dryNs <= leastNs && works[i])) {
          first = i;
          leastNs = dryNs;
        }
      }
    }
    return first;
  }

  private void pass(double passedNs) {
    for (int i = 0; i < rates.length; i++) {
      TenantRecord record = records.get(i);
      double servedNs = rates[i] * passedNs;
      record.stepEntitledNs += servedNs;
      if (!record.endless) {
        record.backlogNs = Math.max(0, record.backlogNs - servedNs);
      }
    }
    nowNs += passedNs;
  }

  private void endStep() {
    nowNs = stepEndNs;
    steps++;
    long usedNs = 0;
    double entitledNs = 0;
    for (TenantRecord record : records) {
      usedNs += record.stepUsedNs;
      entitledNs += record.stepEntitledNs;
      if (counting) {
        record.endStep(stepEndNs, STEP_NS);
      }
      if (counting && steps % stepsOfPoint == 0) {
        record.endPoint(STEP_NS * stepsOfPoint);
      }
      record.stepUsedNs = 0;
      record.stepEntitledNs = 0;
    }
    if (counting) {
      endWindow(usedNs, entitledNs);
    }
    stepEndNs += STEP_NS;
  }

  private void endWindow(long usedNs, double entitledNs) {
    int slot = steps % STEPS_OF_WINDOW;
    windowUsedNs += usedNs - allUsed[slot];
    windowEntitledNs += entitledNs - allEntitled[slot];
    allUsed[slot] = usedNs;
    allEntitled[slot] = entitledNs;
    double part = windowEntitledNs <= 0 ? 1 : Math.min(1, windowUsedNs / windowEntitledNs);
    if (steps >= STEPS_OF_WINDOW) {
      for (TenantRecord record : records) {
        record.endWindow(part, stepEndNs, STEP_NS * STEPS_OF_WINDOW);
      }
    }
  }
}
