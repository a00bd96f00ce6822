package dev.vgpu.core.metering;

import dev.vgpu.GpuUsage;
import java.util.OptionalDouble;

/**
 * What is counted of one virtual GPU on one GPU, in the process that has the seat. Guarded by its
 * {@link Meter}, but for what is volatile.
 */
public final class LeaseAccount {
  private static final double NS_PER_SECOND = 1e9;

  final String id;
  final String name;
  final String gpu;
  long startMs;

  /** Whether something was written of it, by this process or an earlier one. */
  boolean written;

  boolean begun;
  boolean closed;

  /** What shows how others slow it. */
  final Slowdown slowdown = new Slowdown();

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
   * @param gpu the GPU's name
   */
  public LeaseAccount(String id, String name, String gpu) {
    this.id = id;
    this.name = name;
    this.gpu = gpu;
  }

  /** {@return how much longer its work takes beside others than alone, if that is known} */
  public OptionalDouble slowdown() {
    return slowdown.estimate();
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
    Counters grown = now.since(raw);
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
    return new UsageEntry(id, name, gpu, startMs, sampledMs, !written, closed, total, raw);
  }

  void markWritten() {
    written = true;
    writtenTotal = total;
  }
}
