package dev.vgpu.core.metering;

import dev.vgpu.VgpuException;
import dev.vgpu.core.NanoClock;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.UsageRecord;
import java.io.IOException;
import java.nio.file.NotDirectoryException;
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
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Counts the use of a node's virtual GPUs and writes it to disk, in the process that holds the
 * seat. What cannot be written is kept in memory until it can. Readings are passed in, so the meter
 * needs no thread. {@link #write}, {@link #since} and {@link #close} access files; the other
 * methods do not. Safe for use by several threads.
 */
public final class Meter implements AutoCloseable {
  private static final int MOST_KEPT = 20_000;
  private static final int MOST_CLOSED = 1_000;
  private static final int MOST_IN_PART = 1_000;
  private static final long AGAIN_NS = 5_000_000_000L;

  /**
   * A reading of a virtual GPU.
   *
   * @param account its account
   * @param usage the use until now
   */
  public record Reading(LeaseAccount account, GpuUsage usage) {}

  private final NanoClock clock;
  private final @Nullable UsageJournal journal;
  private final Consumer<String> whenFails;

  private final ReentrantLock lock = new ReentrantLock();

  // The fields below are guarded by the lock.
  private final Set<LeaseAccount> living = new LinkedHashSet<>();
  private final List<LeaseAccount> resuming = new ArrayList<>();
  private final List<Reading> closedWhileResuming = new ArrayList<>();
  private final Deque<UsageEntry> lastClosed = new ArrayDeque<>();
  private List<UsageEntry> unwritten = new ArrayList<>();

  /**
   * Prevents concurrent writes to the journal; taken before the other lock. Fair, because those who
   * read the journal in a loop would otherwise keep the writer out.
   */
  private final ReentrantLock writing = new ReentrantLock(true);

  // The write lock guards writes to the fields below.
  private volatile boolean fails;
  private long againNs;
  private boolean closed;

  private volatile boolean abandoned;

  /**
   * Creates a meter.
   *
   * @param clock the time source
   * @param directory where use is written; null keeps it in memory only
   * @param whenFails called once with the reason when writing starts to fail
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
   * Starts counting a virtual GPU.
   *
   * @param account an account without use
   * @param atNs when it began
   * @param atMs when it began, in milliseconds of wall-clock time
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
   * Continues to count a virtual GPU that an earlier holder of the seat has counted, from the next
   * {@link #write} on.
   *
   * @param account an account without use in this process
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
   * Adds readings.
   *
   * @param readings readings of virtual GPUs; closed ones are skipped
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
   * Ends the account of a virtual GPU.
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
   * Returns how many allocations were refused since the last call.
   *
   * @param account the virtual GPU's account
   * @return the number of refused allocations
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

  /** Writes what is not written yet, if possible. */
  public void write() {
    if (journal == null) {
      return;
    }
    writing.lock();
    try {
      // Not after close: another process may write then.
      if (!closed && !abandoned && (!fails || clock.nanoTime() - againNs >= 0)) {
        resume(journal);
        append(journal);
        journal.tidy();
        fails = false;
      }
    } catch (IOException e) {
      againNs = clock.nanoTime() + AGAIN_NS;
      boolean isNew = !fails && !abandoned;
      fails = true;
      if (isNew) {
        whenFails.accept(
            "usage cannot be written: path="
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
   * Finds what an earlier holder of the seat has written about the living accounts. If that cannot
   * be read, counting starts now: too little is better than twice.
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
      account.goOn(last, clock.nanoTime(), nowMs());
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

  /** {@return whether something waits to be written} */
  public boolean hasUnwritten() {
    lock.lock();
    try {
      return journal != null && (!unwritten.isEmpty() || !resuming.isEmpty());
    } finally {
      lock.unlock();
    }
  }

  /**
   * {@return the use of each virtual GPU since a given moment}
   *
   * @param since the moment
   * @param readings of the living virtual GPUs
   * @throws VgpuException if the records cannot be read
   */
  public List<UsageRecord> since(Instant since, Collection<Reading> readings) {
    UsageSum sum = new UsageSum(since, Integer.MAX_VALUE, key -> true);
    sumUp(sum, readings);
    return sum.records();
  }

  /**
   * A part of the list of what was used.
   *
   * @param records the records of this part, at most {@value #MOST_IN_PART}
   * @param next where the next part begins; empty if there is none
   */
  public record Part(List<UsageRecord> records, String next) {}

  /**
   * {@return a part of the use of some virtual GPUs since a given moment} Holds no more than that
   * part, however many virtual GPUs there were.
   *
   * @param since the moment
   * @param from where the part begins, as the part before says; empty for the first part
   * @param isWanted which virtual GPUs, by their id
   * @param readings of the living virtual GPUs
   * @throws IllegalArgumentException if no part says {@code from}
   * @throws VgpuException if the records cannot be read
   */
  public Part part(
      Instant since, String from, Predicate<String> isWanted, Collection<Reading> readings) {
    UsageEntry.Key last = from.isEmpty() ? null : UsageEntry.Key.of(from);
    UsageSum sum =
        new UsageSum(
            since,
            MOST_IN_PART,
            key -> (last == null || key.compareTo(last) > 0) && isWanted.test(key.id()));
    sumUp(sum, readings);
    return new Part(sum.records(), sum.last().map(UsageEntry.Key::text).orElse(""));
  }

  private void sumUp(UsageSum sum, Collection<Reading> readings) {
    if (journal != null) {
      writing.lock();
      try {
        resume(journal); // otherwise, after a take-over, the last second would be missing
        journal.readAll(sum::add);
      } catch (NotDirectoryException e) {
        whenFails.accept(unreadable(journal, e)); // as if the records had been removed
      } catch (IOException e) {
        String reason = unreadable(journal, e);
        whenFails.accept(reason);
        throw new VgpuException(reason, e); // a part would look like all of it
      } finally {
        writing.unlock();
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
  }

  private static String unreadable(UsageJournal journal, IOException why) {
    return "usage cannot be read: path=" + journal.directory() + ": " + why;
  }

  /** Leaves the files to the next holder of the seat: nothing more is written. Does not wait. */
  public void abandon() {
    abandoned = true;
    if (journal != null) {
      journal.abandon();
    }
  }

  /** Writes what is not written yet, and closes the files. */
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
