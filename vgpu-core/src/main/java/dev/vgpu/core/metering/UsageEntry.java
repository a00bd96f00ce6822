package dev.vgpu.core.metering;

import java.util.Comparator;

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
  record Key(String id, String gpus, long startMs) implements Comparable<Key> {
    private static final Comparator<Key> BY_ACQUISITION =
        Comparator.comparingLong(Key::startMs).thenComparing(Key::id).thenComparing(Key::gpus);

    /** The key whose {@link #text} this is. */
    static Key of(String text) {
      int first = text.indexOf(' ');
      int last = text.lastIndexOf(' ');
      if (first >= last) {
        throw new IllegalArgumentException("not a place in the list of what was used: " + text);
      }
      return new Key(
          text.substring(first + 1, last),
          text.substring(last + 1),
          Long.parseLong(text.substring(0, first)));
    }

    /** An id may contain blanks, the GPUs' names do not. */
    String text() {
      return startMs + " " + id + " " + gpus;
    }

    @Override
    public int compareTo(Key other) {
      return BY_ACQUISITION.compare(this, other);
    }
  }

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
