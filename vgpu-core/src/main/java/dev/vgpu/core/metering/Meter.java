package dev.vgpu.core.metering;

import dev.vgpu.GpuUsage;
import dev.vgpu.UsageRecord;
import dev.vgpu.core.NanoClock;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Counts what the virtual GPUs of a node use, and writes it down; in the process that has the seat.
 * Where it cannot be written, it is kept in memory until it can. Readings come in from outside, so
 * that it needs no thread. {@link #write} and {@link #since} read and write files, the others do
 * not. Safe for use by several threads.
 */
public final class Meter implements AutoCloseable {
  private static final int MOST_KEPT = 20_000;
  private static final int MOST_CLOSED = 1_000;
  private static final long AGAIN_NS = 5_000_000_000L;

  /**
   * What a virtual GPU says of itself.
   *
   * @param account what is counted of it
   * @param usage the reading
   */
  public record Reading(LeaseAccount account, GpuUsage usage) {}

  private final NanoClock clock;
  private final @Nullable UsageJournal journal;
  private final Consumer<String> whenFails;

  private final ReentrantLock lock = new ReentrantLock();

  // Guarded by the lock.
  private final Set<LeaseAccount> living = new LinkedHashSet<>();
  private final List<LeaseAccount> resuming = new ArrayList<>();
  private final List<Reading> closedWhileResuming = new ArrayList<>();
  private final Deque<UsageEntry> lastClosed = new ArrayDeque<>();
  private List<UsageEntry> unwritten = new ArrayList<>();

  /** Guards the journal against two that write at once; taken before the other. */
  private final ReentrantLock writing = new ReentrantLock();

  // Guarded by the lock for writing, to write.
  private volatile boolean fails;
  private long againNs;
  private boolean closed;

  /**
   * Makes one.
   *
   * @param clock the time
   * @param directory where it is written; null: it is kept in memory only
   * @param whenFails is told once, with the reason, when it cannot be written any more
   */
  public Meter(NanoClock clock, @Nullable Path directory, Consumer<String> whenFails) {
    this(clock, directory, UsageJournal.Limits.USUAL, whenFails);
  }

  Meter(
      NanoClock clock,
      @Nullable Path directory,
      UsageJournal.Limits limits,
      Consumer<String> whenFails) {
    this.clock = clock;
    this.journal = directory == null ? null : new UsageJournal(directory, limits);
    this.whenFails = whenFails;
  }

  private long nowMs() {
    return clock.now().toEpochMilli();
  }

  /**
   * Counts a virtual GPU.
   *
   * @param account has used nothing
   * @param atNs since when
   * @param atMs since when, in milliseconds of the time of day
   */
  public void opened(LeaseAccount account, long atNs, long atMs) {
    lock.lock();
    try {
      account.begin(atNs, atMs);
      living.add(account);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Counts a virtual GPU on that an earlier holder of the seat has counted, from the next {@link
   * #write} on.
   *
   * @param account has used nothing in this process
   */
  public void restored(LeaseAccount account) {
    lock.lock();
    try {
      if (journal == null) {
        account.begin(clock.nanoTime(), nowMs());
      } else {
        resuming.add(account);
      }
      living.add(account);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Takes readings.
   *
   * @param readings of virtual GPUs; those that are closed are left out
   */
  public void sample(Collection<Reading> readings) {
    lock.lock();
    try {
      Map<String, List<LeaseAccount>> byGpu = new HashMap<>();
      advance(readings);
      for (Reading reading : readings) {
        LeaseAccount account = reading.account();
        if (account.begun && !account.closed) {
          byGpu.computeIfAbsent(account.gpus, gpus -> new ArrayList<>()).add(account);
          if (account.isNews()) {
            unwritten.add(account.entry());
            account.markWritten();
          }
        }
      }
      byGpu.values().forEach(Slowdown::observe);
      keepWithinBounds();
    } finally {
      lock.unlock();
    }
  }

  private void advance(Collection<Reading> readings) {
    long nowNs = clock.nanoTime();
    long nowMs = nowMs();
    for (Reading reading : readings) {
      if (reading.account().begun && !reading.account().closed) {
        reading.account().advance(nowNs, nowMs, reading.usage());
      }
    }
  }

  /**
   * A virtual GPU is closed.
   *
   * @param last the last reading
   */
  public void closed(Reading last) {
    lock.lock();
    try {
      if (last.account().begun) {
        close(last);
      } else if (living.contains(last.account())) {
        closedWhileResuming.add(last);
      }
    } finally {
      lock.unlock();
    }
  }

  private void close(Reading last) {
    if (living.remove(last.account())) {
      advance(List.of(last));
      last.account().closed = true;
      UsageEntry entry = last.account().entry();
      unwritten.add(entry);
      lastClosed.add(entry);
      if (lastClosed.size() > MOST_CLOSED) {
        lastClosed.remove();
      }
    }
  }

  /**
   * Says how many allocations were refused since this was asked last.
   *
   * @param account whose
   * @return how many
   */
  public long newlyDenied(LeaseAccount account) {
    lock.lock();
    try {
      long denied = account.total().denied();
      long more = denied - account.deniedTold;
      account.deniedTold = denied;
      return more;
    } finally {
      lock.unlock();
    }
  }

  private void keepWithinBounds() {
    if (unwritten.size() > MOST_KEPT) {
      List<UsageEntry> thin = Thinning.of(unwritten);
      int tooMany = Math.max(0, thin.size() - MOST_KEPT / 2);
      unwritten = new ArrayList<>(thin.subList(tooMany, thin.size()));
    }
  }

  // ---- files

  /** Writes what was not written yet, if that is possible. */
  public void write() {
    if (journal == null) {
      return;
    }
    writing.lock();
    try {
      // Not after the end: another process may write then.
      if (!closed && (!fails || clock.nanoTime() - againNs >= 0)) {
        resume(journal);
        append(journal);
        journal.tidy();
        fails = false;
      }
    } catch (IOException e) {
      againNs = clock.nanoTime() + AGAIN_NS;
      boolean isNew = !fails;
      fails = true;
      if (isNew) {
        whenFails.accept(
            "what is used cannot be written: path="
                + journal.directory()
                + ": "
                + e
                + "; it is kept in this process until it can; make room there, or let this user"
                + " write there");
      }
    } finally {
      writing.unlock();
    }
  }

  /**
   * Finds what an earlier holder has written of what lives. Where that cannot be read, it is
   * counted from now on: rather too little than twice.
   */
  private void resume(UsageJournal from) throws IOException {
    List<LeaseAccount> asked;
    lock.lock();
    try {
      asked = List.copyOf(resuming);
    } finally {
      lock.unlock();
    }
    if (asked.isEmpty()) {
      return;
    }
    Set<String> ids = new HashSet<>();
    asked.forEach(account -> ids.add(account.id));
    Map<String, List<UsageEntry>> found = Map.of();
    IOException unreadable = null;
    try {
      found = from.lastOf(ids);
    } catch (IOException e) {
      unreadable = e;
    }
    lock.lock();
    try {
      for (LeaseAccount account : asked) {
        if (unreadable == null) {
          resume(account, found.getOrDefault(account.id, List.of()));
        } else {
          account.beginWithNextReading(clock.nanoTime(), nowMs());
        }
      }
      resuming.removeAll(asked);
      closedWhileResuming.removeIf(
          last -> {
            boolean can = last.account().begun;
            if (can) {
              close(last);
            }
            return can;
          });
    } finally {
      lock.unlock();
    }
    if (unreadable != null) {
      throw unreadable;
    }
  }

  private void resume(LeaseAccount account, List<UsageEntry> found) {
    UsageEntry last = null;
    for (UsageEntry entry : found) {
      if (entry.gpus().equals(account.gpus) && (last == null || entry.atMs() >= last.atMs())) {
        last = entry;
      }
    }
    if (last == null) {
      account.begin(clock.nanoTime(), nowMs());
    } else {
      account.goOn(last, clock.nanoTime());
    }
  }

  private void append(UsageJournal to) throws IOException {
    List<UsageEntry> entries;
    lock.lock();
    try {
      entries = List.copyOf(unwritten);
    } finally {
      lock.unlock();
    }
    if (!entries.isEmpty()) {
      to.append(entries);
      lock.lock();
      try {
        unwritten.removeAll(new HashSet<>(entries));
      } finally {
        lock.unlock();
      }
    }
  }

  /** {@return whether something waits to be written, that may be possible to write} */
  public boolean hasUnwritten() {
    lock.lock();
    try {
      return journal != null && (!unwritten.isEmpty() || !resuming.isEmpty());
    } finally {
      lock.unlock();
    }
  }

  /**
   * {@return what each virtual GPU has used from a moment on}
   *
   * @param since the moment
   * @param readings of those that live
   */
  public List<UsageRecord> since(Instant since, Collection<Reading> readings) {
    UsageSum sum = new UsageSum(since);
    if (journal != null) {
      try {
        journal.readAll(sum::add);
      } catch (IOException e) {
        whenFails.accept("what was used cannot be read: path=" + journal.directory() + ": " + e);
      }
    }
    lock.lock();
    try {
      advance(readings);
      unwritten.forEach(sum::add);
      lastClosed.forEach(sum::add);
      living.stream().filter(account -> account.begun).forEach(account -> sum.add(account.entry()));
    } finally {
      lock.unlock();
    }
    return sum.records();
  }

  /** Writes what was not written yet, and closes the files. */
  @Override
  public void close() {
    writing.lock();
    try {
      againNs = clock.nanoTime(); // a last attempt
      write();
      closed = true;
      if (journal != null) {
        journal.close();
      }
    } finally {
      writing.unlock();
    }
  }
}
