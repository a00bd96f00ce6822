package dev.vgpu.simulation;

import dev.vgpu.core.schedule.SchedulerSettings;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.Tenant;
import dev.vgpu.core.schedule.TurnObserver;
import dev.vgpu.core.schedule.TurnStepper;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * A scheduler and its tenants in virtual time, which passes as fast as the machine allows. Not
 * thread-safe.
 */
public final class VirtualNode {
  /** A microsecond, in nanoseconds. */
  public static final long US = 1_000;

  /** A millisecond, in nanoseconds. */
  public static final long MS = 1_000_000;

  /** A second, in nanoseconds. */
  public static final long S = 1_000_000_000;

  /** A GPU's time slice while several tenants have work on it. */
  public static final long SLICE_NS = 2_048 * US;

  /** How long nothing runs on a GPU that changes from one process to another. */
  public static final long CHANGE_NS = 140 * US;

  private static final int MOST_STEPS = 100_000;

  private final List<VirtualGate> gates = new ArrayList<>();
  private final List<Tenant> tenants = new ArrayList<>();
  private final List<VirtualGpuRequest> requests = new ArrayList<>();
  private final List<String> decisions = new ArrayList<>();
  private final List<String> stalls = new ArrayList<>();
  private final Set<Integer> removed = new HashSet<>();
  private final SchedulerSettings settings;
  private final NodeObserver observer;
  private final VirtualDevice device;
  private final boolean recordsDecisions;
  private ShareScheduler scheduler;
  private final TreeMap<Long, List<Runnable>> agenda = new TreeMap<>();
  private long nowNs;
  private long stoppedUntilNs;
  private long lostUntilNs;
  private long aheadNs;
  private int steps;

  /** Creates a node without an offline floor. */
  public VirtualNode() {
    this(0);
  }

  /**
   * Creates a node.
   *
   * @param offlineFloorPercent the minimum part for offline tenants
   */
  public VirtualNode(int offlineFloorPercent) {
    this(settings(offlineFloorPercent));
  }

  /**
   * Creates a node that keeps a list of its decisions.
   *
   * @param settings the settings of its scheduler
   */
  public VirtualNode(SchedulerSettings settings) {
    this(settings, SLICE_NS, CHANGE_NS, NodeObserver.NONE, true);
  }

  /**
   * Creates a node that keeps no list of its decisions.
   *
   * @param settings the settings of its scheduler
   * @param sliceNs the GPU's time slice while several tenants have work on it
   * @param changeNs how long nothing runs when the GPU changes from one process to another
   * @param observer observes the node
   */
  public VirtualNode(
      SchedulerSettings settings, long sliceNs, long changeNs, NodeObserver observer) {
    this(settings, sliceNs, changeNs, observer, false);
  }

  private VirtualNode(
      SchedulerSettings settings,
      long sliceNs,
      long changeNs,
      NodeObserver observer,
      boolean recordsDecisions) {
    this.recordsDecisions = recordsDecisions;
    this.settings = settings;
    this.observer = observer;
    this.device = new VirtualDevice(sliceNs, changeNs, observer);
    this.scheduler = seat();
  }

  private ShareScheduler seat() {
    TurnObserver observes =
        new TurnObserver() {
          @Override
          public void preempted(Tenant victim, Tenant by, int askedToEnd) {
            VirtualNode.this.preempted(victim, by);
          }

          @Override
          public void stoodStill(Tenant tenant, String what) {
            stalls.add(nowNs + " " + tenant.id() + " " + what);
          }
        };
    return new ShareScheduler(settings, observes, seatNs());
  }

  /** The present by the seat's clock. */
  private long seatNs() {
    return nowNs + aheadNs;
  }

  private void preempted(Tenant victim, Tenant by) {
    if (recordsDecisions) {
      decisions.add(nowNs + " " + by.id() + " preempts " + victim.id());
    }
    int number = tenants.indexOf(victim);
    if (number >= 0) {
      observer.preempted(gates.get(number), nowNs);
    }
  }

  /**
   * {@return the settings that most tests use}
   *
   * @param offlineFloorPercent the minimum part for offline tenants
   */
  public static SchedulerSettings settings(int offlineFloorPercent) {
    return new SchedulerSettings(
        2 * MS, 50 * MS, 100 * US, offlineFloorPercent / 100.0, false, 30 * S);
  }

  /**
   * {@return the request of a tenant}
   *
   * @param policy its policy
   * @param percent its share; 0 means none
   * @param preemptionClass its class
   */
  public static VirtualGpuRequest request(
      SharePolicy policy, int percent, PreemptionClass preemptionClass) {
    VirtualGpuRequest.Builder builder =
        VirtualGpuRequest.builder()
            .memory(MemorySize.ofMebibytes(1))
            .policy(policy)
            .preemptionClass(preemptionClass);
    return percent == 0 ? builder.build() : builder.computePercent(percent).build();
  }

  /**
   * {@return work that never ends}
   *
   * @param callNs the length of each call or kernel
   */
  public static Workload backlog(long callNs) {
    return new CallQueue(callNs);
  }

  /**
   * Adds a tenant with an endless supply of calls of one length, which cannot be cancelled.
   *
   * @param policy its policy
   * @param percent its share; 0 means none
   * @param preemptionClass its class
   * @param callNs the length of its calls
   * @return its number
   */
  public int backlogged(
      SharePolicy policy, int percent, PreemptionClass preemptionClass, long callNs) {
    return add(new VirtualGate("t" + gates.size(), callNs, -1), policy, percent, preemptionClass);
  }

  /**
   * Adds a tenant whose calls come from {@link #arrive}.
   *
   * @param policy its policy
   * @param percent its share; 0 means none
   * @param preemptionClass its class
   * @return its number
   */
  public int sporadic(SharePolicy policy, int percent, PreemptionClass preemptionClass) {
    return add(new VirtualGate("t" + gates.size(), 0, -1), policy, percent, preemptionClass);
  }

  /**
   * Adds processes under the hook with an endless supply of kernels of one length.
   *
   * @param policy its policy
   * @param percent its share; 0 means none
   * @param preemptionClass its class
   * @param kernelNs the length of its kernels
   * @return its number
   */
  public int processes(
      SharePolicy policy, int percent, PreemptionClass preemptionClass, long kernelNs) {
    VirtualGate gate =
        new VirtualGate("t" + gates.size(), GateModel.processes(), new CallQueue(kernelNs));
    return add(gate, policy, percent, preemptionClass);
  }

  /**
   * Adds processes under the hook whose kernels come from {@link #arrive}.
   *
   * @param policy its policy
   * @param percent its share; 0 means none
   * @param preemptionClass its class
   * @return its number
   */
  public int sporadicProcesses(SharePolicy policy, int percent, PreemptionClass preemptionClass) {
    return processes(policy, percent, preemptionClass, 0);
  }

  /**
   * Adds a tenant.
   *
   * @param gate its gate, shut
   * @param policy its policy
   * @param percent its share; 0 means none
   * @param preemptionClass its class
   * @return its number
   */
  public int add(
      VirtualGate gate, SharePolicy policy, int percent, PreemptionClass preemptionClass) {
    return add(gate, request(policy, percent, preemptionClass));
  }

  /**
   * Adds a tenant, whose programs begin now.
   *
   * @param gate its gate, shut
   * @param request the granted terms
   * @return its number
   */
  public int add(VirtualGate gate, VirtualGpuRequest request) {
    int number = gates.size();
    gates.add(gate);
    requests.add(request);
    tenants.add(new Tenant(gate.id(), gate, request));
    gate.attach(device, number, request.preemptionClass() != PreemptionClass.OFFLINE);
    scheduler.paid(tenants.get(number), 0);
    return number;
  }

  /**
   * Ends a tenant's programs and removes it. Its number and its use are kept.
   *
   * @param tenant its number
   */
  public void remove(int tenant) {
    gates.get(tenant).end();
    removed.add(tenant);
    scheduler.remove(tenants.get(tenant), seatNs());
  }

  /**
   * Schedules a call for a tenant.
   *
   * @param tenant its number
   * @param atNs when it arrives
   * @param callNs how long the call runs
   */
  public void arrive(int tenant, long atNs, long callNs) {
    at(
        atNs,
        () -> {
          gates.get(tenant).queue(callNs);
          gates.get(tenant).arrived();
        });
  }

  /**
   * Schedules an action.
   *
   * @param atNs when to run it
   * @param action the action
   */
  public void at(long atNs, Runnable action) {
    agenda.computeIfAbsent(atNs, key -> new ArrayList<>()).add(action);
  }

  /**
   * Lets time pass.
   *
   * @param endNs when to stop
   */
  public void runUntil(long endNs) {
    int stepsNow = 0;
    while (true) {
      long beforeNs = nowNs;
      nowNs = device.advance(Math.max(nowNs, Math.min(endNs, nextNs())));
      while (!agenda.isEmpty() && agenda.firstKey() <= nowNs) {
        agenda.pollFirstEntry().getValue().forEach(Runnable::run);
      }
      device.settle();
      if (nowNs >= stoppedUntilNs) {
        tell();
        step();
      }
      if (nowNs >= endNs && nextNs() > endNs) {
        return;
      }
      stepsNow = nowNs > beforeNs ? 0 : stepsNow + 1;
      if (stepsNow > MOST_STEPS) {
        throw new IllegalStateException("time stands still: nowNs=" + nowNs);
      }
    }
  }

  /**
   * Stops the seat: until then it decides nothing and receives no news.
   *
   * @param untilNs when it continues
   */
  public void stopSeat(long untilNs) {
    stoppedUntilNs = untilNs;
  }

  /**
   * Kills the seat: until then nothing is decided. Then another seat takes over the tenants, whose
   * gates are as the dead one left them.
   *
   * @param untilNs when the next seat begins
   */
  public void killSeat(long untilNs) {
    stopSeat(untilNs);
    at(untilNs, this::takeOver);
  }

  /**
   * Loses what the tenants report.
   *
   * @param untilNs when their reports arrive again
   */
  public void loseNews(long untilNs) {
    lostUntilNs = untilNs;
  }

  /**
   * Sets the seat's clock forward. The tenants' use must not be measured by it: they must report it
   * when a kernel has ended.
   *
   * @param byNs by how much
   */
  public void stepClock(long byNs) {
    aheadNs += byNs;
  }

  /** {@return whether the seat is stopped or dead} */
  public boolean isSeatStopped() {
    return nowNs < stoppedUntilNs;
  }

  private void takeOver() {
    scheduler = seat();
    for (int i = 0; i < tenants.size(); i++) {
      if (!removed.contains(i)) {
        tenants.set(i, new Tenant(gates.get(i).id(), gates.get(i), requests.get(i)));
        scheduler.adopt(tenants.get(i), seatNs());
      }
    }
  }

  /** When the scheduler or the agenda is due. */
  private long nextNs() {
    long wakeNs = scheduler.nextWakeNs();
    long dueNs = wakeNs == TurnStepper.NEVER ? wakeNs : wakeNs - aheadNs;
    long nextNs = Math.max(dueNs, stoppedUntilNs);
    return agenda.isEmpty() ? nextNs : Math.min(nextNs, agenda.firstKey());
  }

  private void tell() {
    for (int i = 0; i < gates.size(); i++) {
      VirtualGate gate = gates.get(i);
      boolean arrives = nowNs >= lostUntilNs;
      if (gate.takeWanted() && arrives) {
        scheduler.wanted(tenants.get(i), seatNs());
      }
      if (gate.takeDrained() && arrives) {
        scheduler.drained(tenants.get(i), seatNs());
      }
    }
  }

  private void step() {
    steps++;
    if (scheduler.doWork(seatNs()) > 0) {
      if (recordsDecisions) {
        decisions.add(nowNs + " " + openGates());
      }
      checkOverlap();
    }
  }

  private String openGates() {
    String names =
        gates.stream()
            .filter(VirtualGate::isOpen)
            .map(VirtualGate::id)
            .collect(Collectors.joining("+"));
    return names.isEmpty() ? "nobody" : names;
  }

  /**
   * Checks that only gates that allow it are open together; beside any other gate, nothing may run.
   */
  private void checkOverlap() {
    boolean alone = false;
    int open = 0;
    for (VirtualGate gate : gates) {
      boolean bearsIt = gate.mayOverlap() || gate.yieldsByItself();
      alone |= !bearsIt && (gate.isOpen() || gate.isRunning());
      open += gate.isOpen() || gate.isRunning() ? 1 : 0;
    }
    if (alone && open > 1) {
      throw new IllegalStateException("turns overlap: nowNs=" + nowNs + " gates=" + openGates());
    }
  }

  /** {@return the scheduler of its present seat} */
  public ShareScheduler scheduler() {
    return scheduler;
  }

  /** {@return the tenants' gates, by number} */
  public List<VirtualGate> gates() {
    return gates;
  }

  /**
   * {@return a tenant's gate}
   *
   * @param tenant its number
   */
  public VirtualGate gate(int tenant) {
    return gates.get(tenant);
  }

  /** {@return the tenants, by number} */
  public List<Tenant> tenants() {
    return tenants;
  }

  /** {@return the decisions and their times, one line each} */
  public List<String> decisions() {
    return decisions;
  }

  /** {@return when the GPU was stalled, and why, one line each} */
  public List<String> stalls() {
    return stalls;
  }

  /** {@return the present} */
  public long nowNs() {
    return nowNs;
  }

  /** {@return how often the scheduler was stepped} */
  public int steps() {
    return steps;
  }

  /**
   * {@return the GPU time that a tenant used}
   *
   * @param tenant its number
   */
  public long usedNs(int tenant) {
    return gates.get(tenant).gpuTimeNs(nowNs);
  }

  /**
   * {@return the percent of all time that a tenant used}
   *
   * @param tenant its number
   */
  public double percent(int tenant) {
    return 100.0 * usedNs(tenant) / nowNs;
  }
}
