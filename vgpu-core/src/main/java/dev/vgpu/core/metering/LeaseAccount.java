package dev.vgpu.core.metering;

import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuUsage;
import java.util.List;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/**
 * The metered use of one virtual GPU, in the process that holds the seat. Guarded by its {@link
 * Meter}, except for volatile fields.
 */
public final class LeaseAccount {
  private static final double NS_PER_SECOND = 1e9;
  private static final long MILLI_NS = 1_000_000;

  final String id;
  final String name;
  final String gpus;
  private final int gpuCount;
  long startMs;

  /** Whether a record of it was written, by this process or an earlier one. */
  boolean written;

  boolean begun;
  boolean closed;

  /** The estimate of how others slow it down; null until first sampled. */
  volatile @Nullable Slowdown slowdown;

  /** The refused allocations that were already reported. */
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
   * Creates an account without use.
   *
   * @param id the virtual GPU's id
   * @param name the name in its request
   * @param gpus the GPUs that it is cut from
   */
  public LeaseAccount(String id, String name, List<GpuId> gpus) {
    this.id = id;
    this.name = name;
    StringBuilder names = new StringBuilder(); // no stream: this runs while a caller acquires
    for (GpuId gpu : gpus) {
      names.append(names.isEmpty() ? "" : UsageEntry.COMMA).append(gpu.value());
    }
    this.gpus = names.toString();
    this.gpuCount = gpus.size();
  }

  /** {@return the virtual GPU's id} */
  public String id() {
    return id;
  }

  /** {@return how much longer its work takes beside others than alone, if known} */
  public OptionalDouble slowdown() {
    Slowdown known = slowdown;
    return known == null ? OptionalDouble.empty() : known.estimate();
  }

  /** Starts counting. */
  void begin(long nowNs, long atMs) {
    begun = true;
    startMs = atMs;
    sampledNs = nowNs;
    sampledMs = atMs;
  }

  /** Continues from what an earlier holder of the seat has written. */
  void goOn(UsageEntry from, long nowNs, long nowMs) {
    begun = true;
    written = true;
    restored = true;
    startMs = from.startMs();
    total = from.total();
    raw = from.raw();
    writtenTotal = total;
    byteSeconds = total.byteSeconds();
    deniedTold = total.denied();
    boolean isTimed = from.atNs() > 0 && from.atNs() <= nowNs;
    sampledNs = isTimed ? from.atNs() : nowNs - Math.max(0, nowMs - from.atMs()) * MILLI_NS;
    sampledMs = from.atMs();
  }

  /** Counts only what is used after the next reading. */
  void beginWithNextReading(long nowNs, long atMs) {
    begin(nowNs, atMs);
    fromNextReading = true;
  }

  /**
   * Adds a reading. Threads read without a lock, so an older reading may be added after a newer
   * one: a lower counter is old, except in the first reading after a take-over, which may restart
   * it.
   */
  void advance(long nowNs, long atMs, GpuUsage usage) {
    Counters now = Counters.of(usage);
    raw = fromNextReading ? now : raw;
    fromNextReading = false;
    Counters grown = now.since(raw);
    raw = restored ? now : raw.plus(grown);
    long held = Math.max(usage.memoryUsed().bytes(), usage.memoryReserved().bytes());
    double seconds = (nowNs - sampledNs) / NS_PER_SECOND;
    // Assume that the present memory was held since the last holder of the seat wrote.
    byteSeconds += seconds * (restored ? held : (held + (double) heldBytes) / 2);
    restored = false;
    heldBytes = held;
    sampledNs = nowNs;
    sampledMs = atMs;
    total = total.plus(grown.timesGpus(gpuCount)).withByteSeconds(Math.round(byteSeconds));
  }

  Counters total() {
    return total;
  }

  /** Whether there is use that is not written. */
  boolean isNews() {
    return !written || !total.equals(writtenTotal);
  }

  /** The record to write now. */
  UsageEntry entry() {
    Counters grown = total.since(writtenTotal);
    return new UsageEntry(id, name, gpus, startMs, sampledMs, sampledNs, closed, grown, total, raw);
  }

  void markWritten() {
    written = true;
    writtenTotal = total;
  }
}
