package dev.vgpu.core.metering;

import dev.vgpu.GpuId;
import dev.vgpu.GpuUsage;
import java.util.List;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/**
 * What is counted of one virtual GPU, in the process that has the seat. Guarded by its {@link
 * Meter}, but for what is volatile.
 */
public final class LeaseAccount {
  private static final double NS_PER_SECOND = 1e9;

  final String id;
  final String name;
  final String gpus;
  private final int gpuCount;
  long startMs;

  /** Whether something was written of it, by this process or an earlier one. */
  boolean written;

  boolean begun;
  boolean closed;

  /** What shows how others slow it; null until it is first looked at. */
  volatile @Nullable Slowdown slowdown;

  /** The refused allocations that somebody was told of. */
  long deniedTold;

  private double byteSeconds;
  private long heldBytes;
  private long sampledNs;
  private long sampledMs;
  private boolean restored;
  private boolean fromNextReading;
  private Counters total = Counters.ZERO;
  private Counters raw = Counters.ZERO;
  private Counters writtenTotal = Counters.ZERO;

  /**
   * Makes one, which has used nothing.
   *
   * @param id the virtual GPU's name
   * @param name the name that it was asked for under
   * @param gpus the GPUs that it is cut from
   */
  public LeaseAccount(String id, String name, List<GpuId> gpus) {
    this.id = id;
    this.name = name;
    StringBuilder names = new StringBuilder(); // no stream: this is on the way of who acquires
    for (GpuId gpu : gpus) {
      names.append(names.isEmpty() ? "" : UsageEntry.COMMA).append(gpu.value());
    }
    this.gpus = names.toString();
    this.gpuCount = gpus.size();
  }

  /** {@return the virtual GPU's name} */
  public String id() {
    return id;
  }

  /** {@return how much longer its work takes beside others than alone, if that is known} */
  public OptionalDouble slowdown() {
    Slowdown known = slowdown;
    return known == null ? OptionalDouble.empty() : known.estimate();
  }

  /** Counts from now on. */
  void begin(long nowNs, long atMs) {
    begun = true;
    startMs = atMs;
    sampledNs = nowNs;
    sampledMs = atMs;
  }

  /** Counts on from what an earlier holder of the seat has written. */
  void goOn(UsageEntry from, long nowNs) {
    begun = true;
    written = true;
    restored = true;
    startMs = from.startMs();
    total = from.total();
    raw = from.raw();
    writtenTotal = total;
    byteSeconds = total.byteSeconds();
    deniedTold = total.denied();
    sampledNs = nowNs;
    sampledMs = from.atMs();
  }

  /** Counts what is added to the next reading. */
  void beginWithNextReading(long nowNs, long atMs) {
    begin(nowNs, atMs);
    fromNextReading = true;
  }

  /** Takes a reading. */
  void advance(long nowNs, long atMs, GpuUsage usage) {
    Counters now = Counters.of(usage);
    raw = fromNextReading ? now : raw;
    fromNextReading = false;
    Counters grown = now.since(raw).timesGpus(gpuCount);
    raw = now;
    long held = Math.max(usage.memoryUsed().bytes(), usage.memoryReserved().bytes());
    // Since the last holder of the seat wrote, what is held now was held, as far as one can know.
    double seconds =
        restored ? Math.max(0, atMs - sampledMs) / 1e3 : (nowNs - sampledNs) / NS_PER_SECOND;
    byteSeconds += seconds * (restored ? held : (held + (double) heldBytes) / 2);
    restored = false;
    heldBytes = held;
    sampledNs = nowNs;
    sampledMs = atMs;
    total = total.plus(grown).withByteSeconds(Math.round(byteSeconds));
  }

  Counters total() {
    return total;
  }

  /** Whether what is written does not say it all. */
  boolean isNews() {
    return !written || !total.equals(writtenTotal);
  }

  /** What is to be written now. */
  UsageEntry entry() {
    Counters grown = total.since(writtenTotal);
    return new UsageEntry(id, name, gpus, startMs, sampledMs, closed, grown, total, raw);
  }

  void markWritten() {
    written = true;
    writtenTotal = total;
  }
}
