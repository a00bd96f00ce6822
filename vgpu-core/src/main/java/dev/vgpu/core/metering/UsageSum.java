package dev.vgpu.core.metering;

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
 * Makes records of a span of time of the journal's entries, which are told in the order in which
 * they were written; one may be told again. Confined to one thread.
 */
final class UsageSum {
  private final long sinceMs;
  private final Map<UsageEntry.Key, Span> spans = new LinkedHashMap<>();

  private static final class Span {
    /** The last one before the span; null: the span has its beginning, or that is not known. */
    @Nullable UsageEntry before;

    final UsageEntry first;
    UsageEntry last;

    Span(UsageEntry first) {
      this.first = first;
      this.last = first;
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
    Span span = spans.computeIfAbsent(entry.key(), key -> new Span(entry));
    span.last = entry;
    if (entry.atMs() <= sinceMs) {
      span.before = entry;
    }
  }

  /** What was used, of everything that there was in the span. */
  List<UsageRecord> records() {
    List<UsageTotal> totals = new ArrayList<>();
    for (Span span : spans.values()) {
      if (span.last.atMs() > sinceMs) {
        totals.add(total(span));
      }
    }
    totals.sort(Comparator.comparing(UsageTotal::from).thenComparing(UsageTotal::virtualGpu));
    return List.copyOf(totals);
  }

  private UsageTotal total(Span span) {
    UsageEntry last = span.last;
    Counters base = Counters.ZERO;
    if (span.before != null) {
      base = span.before.total();
    } else if (!span.first.opening() && last.startMs() < sinceMs) {
      base = span.first.total(); // what is older is not kept any more
    }
    Counters used = last.total().since(base);
    return new UsageTotal(
        last.id(),
        last.name(),
        new GpuId(last.gpu()),
        Instant.ofEpochMilli(Math.max(sinceMs, last.startMs())),
        Instant.ofEpochMilli(Math.max(sinceMs, last.atMs())),
        last.closed(),
        Duration.ofNanos(used.gpuNs()),
        used.byteSeconds(),
        used.calls(),
        used.launches(),
        used.preemptions(),
        used.denied());
  }
}
