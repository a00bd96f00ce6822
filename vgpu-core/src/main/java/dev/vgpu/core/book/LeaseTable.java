package dev.vgpu.core.book;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuSuspendException;
import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.LeaseRecord;
import dev.vgpu.core.disk.Member;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuState;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The book of the deciding process: which leases hold what of a node's GPUs, and which requests
 * wait. Its lock is taken before a GPU's seat, never after. No backend prepares, moves or closes a
 * virtual GPU while it is held: see {@link BackendWork}. Safe for use by several threads.
 */
public final class LeaseTable {
  private final NodeContext node;
  private final List<GpuBook> books;
  private final @Nullable LeaseDirectory disk;
  private final ReentrantLock lock = new ReentrantLock();
  private final BackendWork work = new BackendWork(lock);
  private final BackendChoices choices;
  private final Preparations preparations;
  private final LeaseGrants grants;
  private final Placement placement;
  private final WaitingLine line;
  private final HeldBack held = new HeldBack();
  private final SeatMeter meter;
  private final LeaseEnds ends;

  /**
   * Creates an empty table. Leases are kept in one directory and use in another; null keeps
   * neither.
   */
  public LeaseTable(
      NodeContext node,
      List<GpuBook> books,
      Enforcements enforcements,
      @Nullable LeaseDirectory disk,
      @Nullable Path usage) {
    this.meter = new SeatMeter(node, this::bookings, this::states, usage);
    this.node = node;
    this.books = books;
    this.disk = disk;
    this.choices = new BackendChoices(enforcements, work);
    this.ends = new LeaseEnds(node, lock, work, meter, disk, this::serve);
    this.preparations = new Preparations(node, lock, work, enforcements, choices, ends, disk);
    this.grants = new LeaseGrants(node, this, lock, work, preparations, disk);
    this.placement = new Placement(books, choices);
    this.line = new WaitingLine(placement, grants);
  }

  private void serve() {
    line.serve();
  }

  /** {@return all GPUs, in order} */
  public List<GpuBook> books() {
    return books;
  }

  /** The books of these GPUs, in order; empty if one is missing. */
  public Optional<List<GpuBook>> books(List<GpuId> ids) {
    List<GpuBook> found = books.stream().filter(book -> ids.contains(book.gpu.id())).toList();
    return found.size() == ids.size() ? Optional.of(found) : Optional.empty();
  }

  /** {@return what removes leases from the book} */
  public LeaseEnds ends() {
    return ends;
  }

  /** {@return what meters the use} */
  public SeatMeter meter() {
    return meter;
  }

  /** {@return what chooses a backend} */
  public BackendChoices choices() {
    return choices;
  }

  /** The verdict on each backend for a request. Changes nothing. */
  public List<BackendChoice> explain(VirtualGpuRequest request) {
    lock.lock();
    try {
      List<GpuBook> allowed = placement.allowed(request);
      List<GpuBook> taken = placement.place(request);
      List<BackendChoice> all = new ArrayList<>();
      for (GpuBook book : allowed) {
        all.addAll(choices.explain(book, request, taken != null && taken.contains(book)));
      }
      return List.copyOf(all);
    } finally {
      lock.unlock();
    }
  }

  /** {@return the leases, as callers see them} */
  public List<GpuLease> leases() {
    return Booking.snapshots(bookings());
  }

  /** {@return how each GPU is shared} */
  public List<GpuState> states() {
    return SharingStates.of(books, bookings(), node.settings());
  }

  /** {@return the bookings} */
  public List<Booking> bookings() {
    lock.lock();
    try {
      Set<Booking> bookings = new LinkedHashSet<>(); // a gang is in several books
      books.forEach(book -> bookings.addAll(book.bookings));
      return List.copyOf(bookings);
    } finally {
      lock.unlock();
    }
  }

  /** {@return the booking with an id} */
  public Optional<Booking> booking(String id) {
    return bookings().stream().filter(booking -> booking.id.equals(id)).findFirst();
  }

  /** {@return the bookings of a member of the seat's group} */
  public List<Booking> bookingsOf(Member member) {
    return bookings().stream()
        .filter(booking -> booking.member.filter(member::isSameUser).isPresent())
        .toList();
  }

  // ---- acquiring

  /** Grants a request, or refuses it. Waits only for the work of a backend that may concern it. */
  public Booking acquire(Asked asked) {
    Thread thread = Thread.currentThread();
    PendingRequest request = new PendingRequest(asked, settled -> LockSupport.unpark(thread));
    decide(request);
    boolean interrupted = false;
    while (!request.isSettled()) {
      LockSupport.park(this);
      interrupted |= Thread.interrupted();
    }
    if (interrupted) {
      thread.interrupt();
    }
    return request.booking();
  }

  /** Grants a request or refuses it; at once, unless the work of a backend may concern it. */
  public void decide(PendingRequest request) {
    lock.lock();
    try {
      checkPossible(request.asked);
      held.because(request.asked.request())
          .ifPresentOrElse(heldBack -> line.refuse(request, heldBack), () -> line.decide(request));
    } finally {
      lock.unlock();
    }
  }

  /** Publishes that a request was refused. */
  public void publishRefused(VirtualGpuRequest request, String refusal) {
    node.listeners().publish(at -> new GpuEvent.Refused(at, request.name(), request, refusal));
  }

  /** Queues a request, which is granted as soon as it fits and is its turn. */
  public void enqueue(PendingRequest waiting) {
    lock.lock();
    try {
      checkPossible(waiting.asked);
      if (held.because(waiting.asked.request()).isPresent()) {
        held.park(waiting);
      } else {
        line.add(waiting);
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Removes a waiting request and says why it did not fit; empty if it was settled in the meantime.
   */
  public Optional<String> giveUp(PendingRequest waiting) {
    lock.lock();
    try {
      if (held.giveUp(waiting)) {
        return held.because(waiting.asked.request());
      }
      if (grants.giveUp(waiting)) {
        return Optional.of(
            "a part of a GPU was not set aside in time: asked " + waiting.asked.request());
      }
      if (!line.remove(waiting)) {
        return Optional.empty();
      }
      return Optional.of(placement.refusal(waiting.asked.request(), "; timed out while waiting"));
    } finally {
      lock.unlock();
    }
  }

  /** Fails all waiting requests of an owner that closes. */
  public void failPending(Object owner) {
    List<Booking> ignored =
        failPending(
            waiting -> waiting.asked.by().owner() == owner,
            new IllegalStateException("the pool was closed"));
  }

  private List<Booking> failPending(Predicate<PendingRequest> which, RuntimeException because) {
    lock.lock();
    try {
      held.failAll(which, because);
      List<Booking> unsettled = grants.failAll(which, because);
      line.failAll(which, because);
      return unsettled;
    } finally {
      lock.unlock();
    }
  }

  /** Stops deciding. Waits for nothing; {@link #giveUp} must follow. */
  public void stopDeciding() {
    ends.giveUp();
    meter.stop();
  }

  /** Fails all waiting requests, so that they are sent to the process that decides. */
  public void giveUp() {
    failPending(waiting -> true, SeatLostException.givenUp())
        .forEach(booking -> booking.calls.released()); // nobody was told of them
  }

  /** Throws if this process no longer decides. */
  public void checkDecides() {
    ends.checkDecides();
  }

  // ---- holding back

  /** Prevents tenants of this name from starting, except online ones. */
  public void holdBack(String name, String reason) {
    lock.lock();
    try {
      held.hold(name, reason);
      for (PendingRequest waiting : line.withdraw(each -> held.because(each).isPresent())) {
        if (waiting.once) {
          line.refuse(waiting, held.because(waiting.asked.request()).orElse(reason));
        } else {
          held.park(waiting);
        }
      }
    } finally {
      lock.unlock();
    }
    node.listeners().publish(at -> new GpuEvent.HeldBack(at, name, reason));
  }

  /** Allows tenants of this name to start again. Their waiting requests are served if they fit. */
  public void letBack(String name) {
    lock.lock();
    try {
      held.letBack(name).forEach(line::add);
    } finally {
      lock.unlock();
    }
  }

  /** Throws if no program may start under a virtual GPU now. */
  public void checkNotHeldBack(Booking booking) {
    if (booking.suspended) {
      throw new GpuSuspendException(
          "no program can start under a suspended virtual GPU; resume it first (vgpu resume): id="
              + booking.id);
    }
    lock.lock();
    try {
      Optional<String> reason = held.because(booking.request());
      if (reason.isPresent()) {
        throw new GpuCapacityException(
            "no program can start under a virtual GPU now: id=" + booking.id + ": " + reason.get(),
            List.of(booking.snapshot()));
      }
    } finally {
      lock.unlock();
    }
  }

  private void checkPossible(Asked asked) {
    checkDecides();
    if (asked.by().isClosed()) {
      throw new IllegalStateException("the pool is closed");
    }
    placement.checkPossible(asked.request());
  }

  /** Changes what requests can be granted from, then serves waiting requests. */
  public void change(Runnable how) {
    lock.lock();
    try {
      how.run();
      line.serve();
    } finally {
      lock.unlock();
    }
  }

  /** {@return whether a part of a GPU is being set aside, moved or given back} Never blocks. */
  public boolean isOnParts() {
    return work.isOnParts();
  }

  /** {@return where backends are at work} */
  BackendWork work() {
    return work;
  }

  // ---- changing and giving back

  /** Replaces the terms of a virtual GPU, or throws and changes nothing. */
  public void resize(Booking booking, VirtualGpuRequest asked) {
    VirtualGpuRequest before;
    lock.lock();
    try {
      work.awaitTurn(booking);
      checkDecides();
      before = booking.request();
      ResizeRules.checkSameElsewhere(before, asked, booking.id, booking.gpus());
      if (booking.calls.isClosed() || booking.released) {
        throw new IllegalStateException("the virtual GPU is closed: id=" + booking.id);
      }
      booking.books.forEach(book -> book.giveBack(before));
      boolean resized = false;
      try {
        ResizeRules.checkFits(booking, asked, placement);
        String obstacle = booking.calls.tryResize(asked, booking.gate);
        if (obstacle != null) {
          throw ResizeRules.cannotResize(booking.id, asked, obstacle, booking.snapshot());
        }
        resized = true;
      } finally {
        VirtualGpuRequest holds = resized ? asked : before;
        booking.books.forEach(book -> book.take(holds));
      }
      booking.request(asked);
      booking.books.forEach(GpuBook::divide);
      booking.rewrite(disk);
      line.serve();
    } finally {
      lock.unlock();
    }
    node.listeners().publish(at -> new GpuEvent.Resized(at, booking.id, before, asked));
  }

  /**
   * Books out ended leases that were kept for programs, if those are gone. The end of such a
   * program is not reported.
   */
  public void releaseUnused() {
    bookings().forEach(ends::releaseIfUnused);
  }

  // ---- programs

  /** Prepares a virtual GPU for programs, once. Takes as long as its backend. */
  public EnforcedLease enforce(Booking booking) {
    return preparations.enforce(booking);
  }

  /** Keeps a virtual GPU for as long as this program lives. */
  public void started(Booking booking, ProcessIdentity program) {
    booking.forgetEnded(lock);
    lock.lock();
    try {
      if (!booking.released
          && booking.programs.size() < LeaseRecord.MOST_PROGRAMS
          && booking.programs.add(program)) {
        booking.rewrite(disk);
      }
    } finally {
      lock.unlock();
    }
  }

  // ---- suspending

  /**
   * Writes to disk that a virtual GPU is suspended, or about to be. Waits until no backend is at
   * work on it.
   *
   * @throws VgpuException if it cannot be written: the next holder of the seat would not know
   */
  public void suspended(Booking booking, String by) {
    lock.lock();
    try {
      work.awaitEnd(booking);
      Optional<String> before = booking.suspension;
      booking.suspension = Optional.of(by);
      if (disk != null && !booking.released) {
        boolean written = false;
        try {
          disk.write(booking.record());
          written = true;
        } finally {
          booking.suspension = written ? booking.suspension : before;
        }
      }
    } finally {
      lock.unlock();
    }
  }

  /** Writes to disk that it is not suspended, also if the disk is full. */
  public void goesOn(Booking booking) {
    lock.lock();
    try {
      booking.suspension = Optional.empty();
      if (!booking.released && disk != null) {
        disk.goesOn(booking.id); // first: there may be no room for a new record
        booking.rewrite(disk);
      }
    } finally {
      lock.unlock();
    }
  }

  // ---- taking over

  /**
   * Books a lease as a process states it, whether or not it fits.
   *
   * @throws GpuCapacityException if there are too many leases
   */
  public Booking claim(LeaseRecord record, List<GpuBook> on, Asked.Claimant by) {
    lock.lock();
    try {
      grants.checkRoom(new Asked(record.request(), by));
      return restore(record, on, by);
    } finally {
      lock.unlock();
    }
  }

  /** Books a lease that was granted before, whether or not it fits. */
  public Booking restore(LeaseRecord record, List<GpuBook> on, Asked.Claimant by) {
    lock.lock();
    try {
      Optional<String> chosen = record.chosen().or(record::backend);
      Booking booking = grants.book(record.id(), on, new Asked(record.request(), by), chosen);
      booking.programs.addAll(record.programs());
      booking.backend = record.backend().orElse(null);
      if (record.suspension().isPresent()) {
        // Before anything may start in it: its memory may be off the GPU.
        booking.suspension = record.suspension();
        booking.suspended = true;
        booking.unsettled = true;
        booking.gate.beginSuspended();
      }
      meter.restored(booking);
      booking.rewrite(disk);
      return booking;
    } finally {
      lock.unlock();
    }
  }
}
