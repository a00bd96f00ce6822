package dev.vgpu.core.metering;

import com.google.common.base.Splitter;
import dev.vgpu.GpuId;
import dev.vgpu.UsageRecord;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Sums journal entries to records of a span of time. Entries are added in the order in which they
 * were written; an entry may be added twice. Confined to one thread.
 */
final class UsageSum {
  private final long sinceMs;
  private final Map<UsageEntry.Key, Span> spans = new LinkedHashMap<>();

  private static final class Span {
    private final long sinceMs;
    private Counters used = Counters.ZERO;

    /** The total when the span began; null if it has not begun. */
    private @Nullable Counters base;

    private UsageEntry last;

    /** Whether a record lies in the span, whatever the wall clock was set to later. */
    private boolean isTouched;

    Span(long sinceMs, UsageEntry first) {
      this.sinceMs = sinceMs;
      this.last = first;
    }

    void add(UsageEntry entry) {
      boolean isInside = entry.atMs() > sinceMs;
      if (isInside && base == null) {
        base = entry.before();
        isTouched = true;
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

  UsageSum(Instant since) {
    this.sinceMs = clamped(since);
  }

  private static long clamped(Instant since) {
    try {
      return since.toEpochMilli();
    } catch (ArithmeticException e) {
      return since.isBefore(Instant.EPOCH) ? Long.MIN_VALUE : Long.MAX_VALUE;
    }
  }

  void add(UsageEntry entry) {
    spans.computeIfAbsent(entry.key(), key -> new Span(sinceMs, entry)).add(entry);
  }

  /** The use of each virtual GPU that has records in the span. */
  List<UsageRecord> records() {
    List<UsageTotal> totals = new ArrayList<>();
    for (Span span : spans.values()) {
      if (span.isTouched) {
        totals.add(total(span));
      }
    }
    totals.sort(Comparator.comparing(UsageTotal::from).thenComparing(UsageTotal::virtualGpu));
    return List.copyOf(totals);
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
