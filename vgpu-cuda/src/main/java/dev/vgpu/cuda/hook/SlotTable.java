package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_NONE;
import static dev.vgpu.cuda.layout.ShmLayout.LEDGER_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_ATTACHED;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_COUNT;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_FREE;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_RECLAIMING;

import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.layout.ShmLayout.Ledger;
import dev.vgpu.cuda.layout.ShmLayout.Slot;
import dev.vgpu.cuda.pages.LeasePages;
import dev.vgpu.cuda.pages.Level2Notes;
import dev.vgpu.cuda.pages.MemoryLedger;
import dev.vgpu.cuda.pages.MemoryLedger.Retired;
import dev.vgpu.cuda.pages.ReportPage;
import dev.vgpu.cuda.process.ProcessLife;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/** The processes of one lease, and their usage. Guarded by the lease's lock. */
final class SlotTable {
  /** How often a process without a socket is checked: at first, and later. */
  private static final long SOON_NS = 1_000_000;

  private static final long LATER_NS = 20_000_000;
  private static final long SOON_FOR_NS = 100_000_000;

  /** A process needs one; it may leave and return before the seat has handled its leaving. */
  private static final int MOST_SLOTS_OF_A_PROCESS = 4;

  private final LeasePages pages;
  private final MemoryLedger ledger;
  private final ProcessLife life;
  private final LeaseMappings mappings;
  private final SlotReadings readings;
  private final LeaseExpress express;
  private final List<SeatSlot> attached = new ArrayList<>();
  private final TimeCredit credit;
  private final List<String> suspicions = new ArrayList<>();
  private Retired retired;
  private long gpuNs;
  private int nextToCheck;
  private boolean finishing;

  SlotTable(
      LeasePages pages,
      LeaseExpress express,
      LeaseMappings mappings,
      ProcessLife life,
      long nowNs) {
    this.express = express;
    this.pages = pages;
    this.ledger = new MemoryLedger(pages.grant(), pages.report());
    this.life = life;
    this.mappings = mappings;
    this.readings = new SlotReadings(pages.report());
    this.credit = new TimeCredit(nowNs);
    if (pages.adopted()) {
      ledger.takeOver();
    }
    this.retired = Retired.in(pages.grant());
    this.gpuNs = retired.gpuNs();
    if (pages.adopted()) {
      adopt(nowNs);
    }
  }

  /** Adopts an earlier seat's slots: keeps those of live processes, and reclaims the others. */
  private void adopt(long nowNs) {
    readings.refresh(SLOT_COUNT - 1);
    for (int number = 1; number < SLOT_COUNT; number++) {
      int state = readings.intAt(number, Slot.STATE);
      if (state == SLOT_FREE) {
        continue;
      }
      SeatSlot slot =
          slot(
              number,
              Integer.toUnsignedLong(readings.intAt(number, Slot.PID)),
              readings.longAt(number, Slot.START_TIME),
              readings.longAt(number, Slot.PID_NAMESPACE),
              nowNs);
      gpuNs += slot.adoptGpuTime();
      attached.add(slot);
    }
    express.adopt(attached);
    for (SeatSlot slot : List.copyOf(attached)) {
      int state = readings.intAt(slot.number, Slot.STATE);
      boolean here = slot.pidNamespace == life.pidNamespace();
      boolean dead = here && life.state(slot.pid, slot.startTime) == ProcessLife.State.DEAD;
      if (state != SLOT_ATTACHED || dead) {
        recover(slot, nowNs);
      }
    }
  }

  private SeatSlot slot(int number, long pid, long startTime, long namespace, long nowNs) {
    // A process in a container can say that it is any process of the seat's own namespace.
    boolean visible =
        namespace == life.pidNamespace()
            && namespace != 0
            && life.isHere(pid)
            && life.state(pid, startTime) != ProcessLife.State.DEAD;
    return new SeatSlot(readings, number, pid, startTime, namespace, visible, nowNs);
  }

  /** {@return why a process must not get a slot, free or not; null if it may have one} */
  @Nullable String refusal(HookMessage hello) {
    boolean here = hello.pidNamespace() == life.pidNamespace() && hello.pidNamespace() != 0;
    if (here && life.state(hello.pid(), hello.startTime()) == ProcessLife.State.DEAD) {
      return "there is no such process: pid=" + hello.pid();
    }
    long has = attached.stream().filter(s -> s.isProcess(hello) && s.connection != null).count();
    return has < MOST_SLOTS_OF_A_PROCESS ? null : "the process has " + has + " slots already";
  }

  /** Gives a process a slot; null if none is free. */
  @Nullable SeatSlot attach(HookMessage hello, long nowNs) {
    // The same process without its slot: it has replaced its program (exec).
    for (SeatSlot slot : List.copyOf(attached)) {
      if (slot.isProcess(hello) && slot.connection == null) {
        recover(slot, nowNs);
      }
    }
    ReportPage report = pages.report();
    for (int number = 1; number < SLOT_COUNT; number++) {
      int at = MemoryLedger.slotAt(number);
      if (find(number) != null || report.intAt(at + Slot.STATE) == SLOT_RECLAIMING) {
        continue;
      }
      SeatSlot slot = slot(number, hello.pid(), hello.startTime(), hello.pidNamespace(), nowNs);
      report.setInt(at + Slot.PID, (int) hello.pid());
      report.setLong(at + Slot.START_TIME, hello.startTime());
      report.setLong(at + Slot.PID_NAMESPACE, hello.pidNamespace());
      report.setInt(at + Slot.GENERATION, report.intAt(at + Slot.GENERATION) + 1);
      report.clear(at + Slot.HEARTBEAT_NS, Slot.RESERVED4 - Slot.HEARTBEAT_NS);
      report.setInt(at + Slot.EXPRESS, EXPRESS_NONE);
      report.clear(at + Slot.MEASURED, Slot.RESERVED1 - Slot.MEASURED);
      express.attached(slot);
      report.setInt(at + Slot.STATE, SLOT_ATTACHED);
      attached.add(slot);
      refresh();
      return slot;
    }
    return null;
  }

  /** {@return the slot that a process already has; null if it is not its own} */
  @Nullable SeatSlot attached(HookMessage hello) {
    SeatSlot slot = find(hello.slot());
    return slot != null && slot.isProcess(hello) ? slot : null;
  }

  private @Nullable SeatSlot find(int number) {
    return attached.stream().filter(slot -> slot.number == number).findFirst().orElse(null);
  }

  /** Reclaims at once what the dead process of a slot held. */
  void recover(SeatSlot slot, long nowNs) {
    if (!attached.contains(slot)) {
      return;
    }
    try {
      refresh();
    } finally { // whatever has become of the pages, the process is gone
      attached.remove(slot);
      express.detached(slot);
    }
    credit(slot, nowNs);
    retired =
        new Retired(
            retired.gpuNs() + slot.creditedNs(),
            retired.launches() + slot.launches(),
            retired.denied() + slot.denied(),
            retired.copyNs() + slot.copyNs());
    ledger.recover(slot.number, retired);
  }

  /**
   * Handles a closed socket: recovers the slot if its process is gone, else watches the process.
   */
  void disconnected(SeatSlot slot, SeatSlot.Socket connection, long nowNs) {
    if (slot.connection != connection) {
      return; // it has another one by now
    }
    slot.connection = null;
    slot.disconnectedNs = nowNs;
    slot.checkedNs = nowNs;
    if (isGone(slot, nowNs)) {
      recover(slot, nowNs);
    }
  }

  private boolean isGone(SeatSlot slot, long nowNs) {
    if (!slot.visible) {
      return mappings.isSeenWithout(slot, nowNs);
    }
    return switch (life.state(slot.pid, slot.startTime)) {
      case DEAD -> true;
      case STOPPED -> false;
      // It lives on without our socket. It has closed all its files, has replaced its program, or
      // left while no seat listened. It may now be under other leases, or attached here again.
      case ALIVE -> isElsewhere(slot) || mappings.isSeenWithout(slot, nowNs);
    };
  }

  /** {@return whether its process has another slot of this lease, with a socket} */
  private boolean isElsewhere(SeatSlot slot) {
    return attached.stream()
        .anyMatch(
            other -> other != slot && other.connection != null && other.isOfTheProcessOf(slot));
  }

  /**
   * Reads all slots and checks them.
   *
   * @param open whether the gate is open
   * @param check whether to check also one process that seems well
   */
  boolean look(long nowNs, boolean open, boolean check) {
    refresh();
    observe(nowNs, open);
    if (check) {
      checkNext(nowNs);
    }
    return true;
  }

  /** Checks the processes whose socket was closed, and looks for stopped ones. */
  void observe(long nowNs, boolean open) {
    for (SeatSlot slot : List.copyOf(attached)) {
      slot.observe(nowNs, open, life);
      express.observed(slot, nowNs);
      if (slot.connection == null) {
        observeDisconnected(slot, nowNs);
      }
    }
  }

  private void observeDisconnected(SeatSlot slot, long nowNs) {
    long away = nowNs - slot.disconnectedNs;
    if (!slot.visible && !slot.welcomed) {
      if (slot.isOverdue(nowNs) && mappings.isSeenWithout(slot, nowNs)) {
        recover(slot, nowNs);
      }
    } else if (nowNs - slot.checkedNs >= (away < SOON_FOR_NS ? SOON_NS : LATER_NS)) {
      slot.checkedNs = nowNs;
      if (isGone(slot, nowNs)) {
        recover(slot, nowNs);
      }
    }
  }

  /** Checks whether one connected process is dead; each call takes the next process. */
  void checkNext(long nowNs) {
    if (attached.isEmpty()) {
      return;
    }
    SeatSlot slot = attached.get(nextToCheck++ % attached.size());
    nextToCheck %= SLOT_COUNT * SLOT_COUNT;
    if (slot.visible && slot.connection != null) { // the others are checked anyway
      slot.checkedNs = nowNs;
      if (life.state(slot.pid, slot.startTime) == ProcessLife.State.DEAD) {
        recover(slot, nowNs);
      }
    }
  }

  /** Reads what the processes report now; the other methods answer from this copy. */
  void refresh() {
    int last = 0;
    for (SeatSlot slot : attached) {
      last = Math.max(last, slot.number);
    }
    if (last != 0) {
      readings.refresh(last);
      attached.forEach(SeatSlot::refreshed);
    }
  }

  /** {@return whether a process has done work since the last call} */
  boolean wentOn() {
    boolean any = false;
    for (SeatSlot slot : attached) {
      any |= slot.wentOn();
    }
    return any;
  }

  /** {@return whether all processes have announced idleness since they last had work} */
  boolean allToldIdleness() {
    for (SeatSlot slot : attached) {
      if (!slot.toldIdleness()) {
        return false;
      }
    }
    return true;
  }

  /** {@return whether a process has no socket, so that its end would not be reported} */
  boolean isWatched() {
    for (SeatSlot slot : attached) {
      if (slot.connection == null) {
        return true;
      }
    }
    return false;
  }

  int count() {
    return attached.size();
  }

  List<Long> pids() {
    return attached.stream().map(slot -> slot.pid).toList();
  }

  LeaseMappings mappings() {
    return mappings;
  }

  /** {@return the matching slots whose process the seat sees in {@code /proc}} */
  List<SeatSlot> visible(Predicate<SeatSlot> which) {
    return attached.stream().filter(slot -> slot.visible && which.test(slot)).toList();
  }

  /** Sets whether work that is stopped inside a kernel is to finish, and so counts as busy. */
  void finishing(boolean finish) {
    finishing = finish;
  }

  boolean isBusy() {
    for (SeatSlot slot : attached) {
      if (slot.isBusy(finishing)) {
        return true;
      }
    }
    return false;
  }

  boolean hasWork() {
    for (SeatSlot slot : attached) {
      if (slot.hasWork()) {
        return true;
      }
    }
    return false;
  }

  /** {@return the lease's GPU time so far} It grows by no more than the time that has passed. */
  long gpuTimeNs(long nowNs) {
    boolean idle = true;
    for (SeatSlot slot : attached) {
      credit(slot, nowNs);
      idle &= !slot.hasWork();
    }
    credit.looked(idle, nowNs);
    return gpuNs;
  }

  /** {@return when the last measured work ended, as its process reports it} */
  long busyUntilNs() {
    return pages.report().longAt(LEDGER_OFFSET + Ledger.BUSY_UNTIL_NS);
  }

  private void credit(SeatSlot slot, long nowNs) {
    long newNs = slot.newGpuTimeNs(credit.limitNs(nowNs));
    credit.used(newNs);
    gpuNs += newNs;
    slot.suspicions.drainTo(suspicions);
  }

  /** {@return the implausible reports since the last call} */
  List<String> takeSuspicions() {
    for (SeatSlot slot : attached) {
      slot.suspicions.drainTo(suspicions);
    }
    if (suspicions.isEmpty()) {
      return List.of();
    }
    List<String> taken = List.copyOf(suspicions);
    suspicions.clear();
    return taken;
  }

  /** {@return the ledger of its memory} */
  MemoryLedger memory() {
    return ledger;
  }

  /** {@return the sum of a field over all processes, as they report it} */
  long sum(int field) {
    long sum = 0;
    for (SeatSlot slot : attached) {
      sum += readings.longAt(slot.number, field);
    }
    return sum;
  }

  /** {@return the greatest value of a field, as the processes report it; at least 0} */
  long most(int field) {
    long most = 0;
    for (SeatSlot slot : attached) {
      most = Math.max(most, readings.longAt(slot.number, field));
    }
    return most;
  }

  /** {@return a process whose field has another value; empty if there is none} */
  Optional<SeatSlot> notYet(int field, int value) {
    for (SeatSlot slot : attached) {
      if (readings.intAt(slot.number, field) != value) {
        return Optional.of(slot);
      }
    }
    return Optional.empty();
  }

  int intAt(SeatSlot slot, int field) {
    return readings.intAt(slot.number, field);
  }

  int waiting() {
    int waiting = 0;
    for (SeatSlot slot : attached) {
      waiting += slot.waiting();
    }
    return waiting;
  }

  long denied() {
    return total(retired.denied(), SeatSlot::denied);
  }

  long launches() {
    return total(retired.launches(), SeatSlot::launches);
  }

  /** {@return the time on the copy engines, in ns} */
  long copyNs() {
    return total(retired.copyNs(), SeatSlot::copyNs);
  }

  long passedThrough() {
    return total(0, SeatSlot::passedThrough);
  }

  private long total(long before, ToLongFunction<SeatSlot> reading) {
    return before + attached.stream().mapToLong(reading).sum();
  }

  /** {@return why a process cannot be stopped inside a kernel; empty if all can} */
  Optional<String> notStoppedBecause() {
    return attached.stream()
        .filter(slot -> intAt(slot, Slot.LEVEL2) == ShmLayout.LEVEL2_OFF)
        .map(slot -> Level2Notes.reason(intAt(slot, Slot.LEVEL2_REASON)) + ": pid=" + slot.pid)
        .findFirst();
  }

  /** {@return whether all processes play their part on the express lane} */
  boolean yieldByThemselves() {
    return express.isWhole(attached);
  }

  /** Tells the processes whether to obey the express lane. */
  void obey(boolean obey) {
    express.obey(obey);
  }

  /** {@return whether a process announces that it is busy} */
  boolean isAnnounced() {
    return express.isBusy();
  }

  /** Ends the part of all processes in the express lane: the lease has ended. */
  void close() {
    express.close(attached);
  }

  /** {@return the sockets of all processes} */
  List<SeatSlot.Socket> connections() {
    List<SeatSlot.Socket> connections = new ArrayList<>();
    for (SeatSlot slot : attached) {
      if (slot.connection != null) {
        connections.add(slot.connection);
      }
    }
    return connections;
  }
}
