package dev.vgpu.bench.demo.figure;

import static java.util.stream.Collectors.counting;
import static java.util.stream.Collectors.groupingBy;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The measurements of one phase, over all its slices. Immutable. */
public final class PhaseResult {
  private static final double NS_PER_SECOND = 1e9;

  private final Phase phase;
  private final List<SliceResult> slices;
  private final long lengthNs;
  private final List<Span> spans;
  private final Latencies latencies;
  private final Latencies sendLag;

  /**
   * Joins slices.
   *
   * @param phase which phase
   * @param slices at least one, all of this phase
   */
  PhaseResult(Phase phase, List<SliceResult> slices) {
    if (slices.isEmpty()) {
      throw new IllegalArgumentException("a phase has no slice: phase=" + phase);
    }
    this.phase = phase;
    this.slices = List.copyOf(slices);
    List<Span> joined = new ArrayList<>();
    List<RequestResult> results = new ArrayList<>();
    long offsetNs = 0;
    for (SliceResult slice : slices) {
      for (Span span : slice.spans()) {
        joined.add(new Span(span.tenant(), span.startNs() + offsetNs, span.endNs() + offsetNs));
      }
      results.addAll(slice.results());
      offsetNs += slice.lengthNs();
    }
    this.lengthNs = offsetNs;
    this.spans = List.copyOf(joined);
    this.latencies = Latencies.of(results);
    this.sendLag = Latencies.ofSending(results);
  }

  /** {@return which phase} */
  Phase phase() {
    return phase;
  }

  /** {@return its slices, in the order in which they ran} */
  public List<SliceResult> slices() {
    return slices;
  }

  /** {@return the measured time, in nanoseconds} */
  long lengthNs() {
    return lengthNs;
  }

  /** {@return which tenant used the device when, one slice after the other} */
  List<Span> spans() {
    return spans;
  }

  /** {@return the latencies of all requests} */
  public Latencies latencies() {
    return latencies;
  }

  /** {@return how late the requests were sent} */
  Latencies sendLag() {
    return sendLag;
  }

  /** {@return the latencies of the requests to one path} */
  public Latencies latencies(String path) {
    return Latencies.of(
        slices.stream()
            .flatMap(slice -> slice.results().stream())
            .filter(result -> result.path().equals(path))
            .toList());
  }

  /** {@return how many requests failed, by HTTP status; 0 means no answer} */
  Map<Integer, Long> failures() {
    return slices.stream()
        .flatMap(slice -> slice.results().stream())
        .filter(result -> !result.isOk())
        .collect(groupingBy(RequestResult::status, TreeMap::new, counting()));
  }

  /** {@return the part of the time in which any tenant used the device, 0 to 1} */
  double utilisation() {
    return BusyTime.of(spans).between(0, lengthNs) / (double) lengthNs;
  }

  /** {@return one tenant's part of the time that the device was used, between two moments} */
  double shareOfUsed(int tenant, long fromNs, long toNs) {
    long usedNs = BusyTime.of(spans).between(fromNs, toNs);
    return usedNs == 0 ? 0 : BusyTime.of(spans, tenant).between(fromNs, toNs) / (double) usedNs;
  }

  /** {@return one tenant's part of the whole time, 0 to 1} */
  double shareOfTime(int tenant) {
    return BusyTime.of(spans, tenant).between(0, lengthNs) / (double) lengthNs;
  }

  /** {@return the extremes of one tenant's part, over all windows of one length} */
  SlidingShare slidingShare(int tenant, long windowNs) {
    return SlidingShare.ofUsed(
        BusyTime.of(spans, tenant), BusyTime.of(spans), windowNs, 0, lengthNs);
  }

  /** {@return the index of the tenant with a name; tenants are the same in every slice} */
  int tenant(String name) {
    List<PhaseSnapshot.Tenant> tenants = slices.get(0).tenants();
    for (int i = 0; i < tenants.size(); i++) {
      if (tenants.get(i).name().equals(name)) {
        return i;
      }
    }
    throw new IllegalStateException("the server reported no tenant " + name + " in " + phase.id());
  }

  /** {@return how many texts a tenant embedded per second} */
  double itemsPerSecond(String name) {
    int tenant = tenant(name);
    long items = slices.stream().mapToLong(slice -> slice.tenants().get(tenant).items()).sum();
    return items * NS_PER_SECOND / lengthNs;
  }

  /** {@return how often a tenant's calls were cancelled for other tenants} */
  long preemptions(String name) {
    int tenant = tenant(name);
    return slices.stream().mapToLong(slice -> slice.tenants().get(tenant).preemptions()).sum();
  }
}
