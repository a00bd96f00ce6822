package dev.vgpu.core.metering;

/**
 * One record of the journal. Immutable.
 *
 * @param id the virtual GPU's id
 * @param name the name in its request
 * @param gpus the GPUs' names
 * @param startMs when it was acquired; identifies the virtual GPU together with the id and the GPUs
 * @param atMs when this was read; both in milliseconds of wall-clock time
 * @param atNs when this was read, by the clock that all processes share until the machine restarts
 *     and that nobody can set; 0 if unknown
 * @param closed whether this is its last record
 * @param grown how much the total grew since the previous record
 * @param total its use so far
 * @param raw the readings behind the total
 */
record UsageEntry(
    String id,
    String name,
    String gpus,
    long startMs,
    long atMs,
    long atNs,
    boolean closed,
    Counters grown,
    Counters total,
    Counters raw) {

  /** Separates the GPUs' names. */
  static final String COMMA = ",";

  /** Identifies one virtual GPU. An id may recur after the run directory was emptied. */
  record Key(String id, String gpus, long startMs) {}

  Key key() {
    return new Key(id, gpus, startMs);
  }

  /** The total of the previous record, whether or not that can be read. */
  Counters before() {
    return total.since(grown);
  }

  /** Merges this record with the one right before it. */
  UsageEntry following(UsageEntry left) {
    Counters both = grown.plus(left.grown);
    return new UsageEntry(id, name, gpus, startMs, atMs, atNs, closed, both, total, raw);
  }
}
