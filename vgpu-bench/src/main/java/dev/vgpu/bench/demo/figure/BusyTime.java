package dev.vgpu.bench.demo.figure;

import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;

/**
 * The times at which a device was used: the union of spans, which may overlap. Tells how long the
 * device was used between two moments. Immutable.
 */
public final class BusyTime {
  private final long[] startsNs;
  private final long[] endsNs;
  private final long[] busyBeforeNs; // the time used before startsNs[i]

  private BusyTime(long[] startsNs, long[] endsNs) {
    this.startsNs = startsNs;
    this.endsNs = endsNs;
    this.busyBeforeNs = new long[startsNs.length];
    for (int i = 1; i < startsNs.length; i++) {
      busyBeforeNs[i] = busyBeforeNs[i - 1] + endsNs[i - 1] - startsNs[i - 1];
    }
  }

  /** {@return when the device was used by anyone} */
  public static BusyTime of(Collection<Span> spans) {
    List<Span> sorted =
        spans.stream()
            .filter(span -> span.endNs() > span.startNs())
            .sorted(Comparator.comparingLong(Span::startNs))
            .toList();
    long[] starts = new long[sorted.size()];
    long[] ends = new long[sorted.size()];
    int count = 0;
    for (Span span : sorted) {
      if (count > 0 && span.startNs() <= ends[count - 1]) {
        ends[count - 1] = Math.max(ends[count - 1], span.endNs());
      } else {
        starts[count] = span.startNs();
        ends[count++] = span.endNs();
      }
    }
    return new BusyTime(Arrays.copyOf(starts, count), Arrays.copyOf(ends, count));
  }

  /** {@return when one tenant used the device} */
  public static BusyTime of(Collection<Span> spans, int tenant) {
    return of(spans.stream().filter(span -> span.tenant() == tenant).toList());
  }

  /** {@return how long the device was used from one moment to another} */
  public long between(long fromNs, long toNs) {
    return until(toNs) - until(fromNs);
  }

  /** {@return the moments at which use began or ended, in order} */
  long[] edgesNs() {
    long[] edges = new long[2 * startsNs.length];
    for (int i = 0; i < startsNs.length; i++) {
      edges[2 * i] = startsNs[i];
      edges[2 * i + 1] = endsNs[i];
    }
    return edges;
  }

  private long until(long momentNs) {
    int index = Arrays.binarySearch(startsNs, momentNs);
    int last = index >= 0 ? index : -index - 2;
    if (last < 0) {
      return 0;
    }
    return busyBeforeNs[last] + Math.min(momentNs, endsNs[last]) - startsNs[last];
  }
}
