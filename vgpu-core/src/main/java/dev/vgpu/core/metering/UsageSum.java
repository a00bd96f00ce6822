package dev.vgpu.core.metering;

import com.google.common.base.Splitter;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.UsageRecord;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Sums journal entries to records of a span of time, in the order of acquisition. Holds only the
 * first {@code most} virtual GPUs that are wanted, however many there are entries of. Entries are
 * added in the order in which they were written; an entry may be added twice. Confined to one
 * thread.
 */
final class UsageSum {
  private final long sinceMs;
  private final int most;
  private final Predicate<UsageEntry.Key> isWanted;
  private final NavigableMap<UsageEntry.Key, Span> spans = new TreeMap<>();
  private boolean isMore;

  private static final class Span {
    private final long sinceMs;
    private Counters used = Counters.ZERO;

    /** The total when the span began; null if it has not begun. */
    private @Nullable Counters base;

    private UsageEntry last;

    Span(long sinceMs, UsageEntry first) {
      this.sinceMs = sinceMs;
      this.last = first;
    }

    void add(UsageEntry entry) {
      boolean isInside = entry.atMs() > sinceMs;
      if (isInside && base == null) {
        base = entry.before();
      } else if (!isInside && base != null) { // the wall clock was set back
        used = used();
        base = null;
      }
      last = entry;
    }

    Counters used() {
      return base == null ? used : used.plus(last.total().since(base));
    }
  }

  UsageSum(Instant since, int most, Predicate<UsageEntry.Key> isWanted) {
    this.sinceMs = clamped(since);
    this.most = most;
    this.isWanted = isWanted;
  }

  private static long clamped(Instant since) {
    try {
      return since.toEpochMilli();
    } catch (ArithmeticException e) {
      return since.isBefore(Instant.EPOCH) ? Long.MIN_VALUE : Long.MAX_VALUE;
    }
  }

  void add(UsageEntry entry) {
    UsageEntry.Key key = entry.key();
    Span known = spans.get(key);
    if (known != null) {
      known.add(entry);
    } else if (entry.atMs() > sinceMs && isWanted.test(key)) {
      // One that was dropped never comes back: those before it only become more.
      if (spans.size() < most || key.compareTo(spans.lastKey()) < 0) {
        Span span = new Span(sinceMs, entry);
        span.add(entry);
        spans.put(key, span);
      } else {
        isMore = true;
      }
      if (spans.size() > most) {
        spans.pollLastEntry();
        isMore = true;
      }
    }
  }

  /** The use of each held virtual GPU. Each has records in the span. */
  List<UsageRecord> records() {
    return spans.values().stream().<UsageRecord>map(this::total).toList();
  }

  /** {@return the last held virtual GPU, if there are more behind it} */
  Optional<UsageEntry.Key> last() {
    return isMore ? Optional.of(spans.lastKey()) : Optional.empty();
  }

  private static List<GpuId> gpus(String names) {
    return Splitter.on(UsageEntry.COMMA).splitToStream(names).map(GpuId::new).toList();
  }

  private UsageTotal total(Span span) {
    UsageEntry last = span.last;
    Counters used = span.used();
    return new UsageTotal(
        last.id(),
        last.name(),
        gpus(last.gpus()),
        Instant.ofEpochMilli(Math.max(sinceMs, last.startMs())),
        Instant.ofEpochMilli(Math.max(sinceMs, last.atMs())),
        last.closed(),
        Duration.ofNanos(used.gpuNs()),
        used.byteSeconds(),
        used.calls(),
        used.launches(),
        used.preemptions(),
        used.denied(),
        Duration.ofNanos(used.copyNs()));
  }
}
