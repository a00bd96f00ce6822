package dev.vgpu.core.metering;

/**
 * One record of the journal. Immutable.
 *
 * @param id the virtual GPU's name
 * @param name the name that it was asked for under
 * @param gpu the GPU's name
 * @param startMs when it was acquired; with the name and the GPU, what is one and the same
 * @param atMs when this was read; both in milliseconds of the time of day
 * @param opening whether nothing was written of it before
 * @param closed whether nothing will be written of it any more
 * @param total what it has used so far
 * @param raw the readings that this was made of
 */
record UsageEntry(
    String id,
    String name,
    String gpu,
    long startMs,
    long atMs,
    boolean opening,
    boolean closed,
    Counters total,
    Counters raw) {

  /** One virtual GPU on one GPU. A name may come again, when a run directory was emptied. */
  record Key(String id, String gpu, long startMs) {}

  Key key() {
    return new Key(id, gpu, startMs);
  }
}
