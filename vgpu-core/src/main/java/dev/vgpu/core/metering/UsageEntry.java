package dev.vgpu.core.metering;

/**
 * One record of the journal. Immutable.
 *
 * @param id the virtual GPU's name
 * @param name the name that it was asked for under
 * @param gpus the GPUs' names
 * @param startMs when it was acquired; with the name and the GPUs, what is one and the same
 * @param atMs when this was read; both in milliseconds of the time of day
 * @param closed whether nothing will be written of it any more
 * @param grown how much of the total is new since the record before this one
 * @param total what it has used so far
 * @param raw the readings that this was made of
 */
record UsageEntry(
    String id,
    String name,
    String gpus,
    long startMs,
    long atMs,
    boolean closed,
    Counters grown,
    Counters total,
    Counters raw) {

  /** Between two GPUs' names. */
  static final String COMMA = ",";

  /** One virtual GPU. A name may come again, when a run directory was emptied. */
  record Key(String id, String gpus, long startMs) {}

  Key key() {
    return new Key(id, gpus, startMs);
  }

  /** The total of the record before this one, whether or not that can be read. */
  Counters before() {
    return total.since(grown);
  }

  /** In the place of another one and this, which comes right after it. */
  UsageEntry following(UsageEntry left) {
    Counters both = grown.plus(left.grown);
    return new UsageEntry(id, name, gpus, startMs, atMs, closed, both, total, raw);
  }
}
