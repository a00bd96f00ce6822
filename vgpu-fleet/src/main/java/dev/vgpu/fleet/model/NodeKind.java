package dev.vgpu.fleet.model;

import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The common properties of nodes with equal GPUs. Immutable.
 *
 * @param model the model of the GPUs
 * @param gpus the number of GPUs
 * @param gpuMebibytes the memory of each GPU, in MiB
 * @param migCuts the kinds of MIG instances that they can be divided into
 */
public record NodeKind(String model, int gpus, int gpuMebibytes, List<MigCut> migCuts) {
  private static final int MEBIBYTE_BITS = 20;

  /** Copies the list. */
  public NodeKind {
    migCuts = List.copyOf(migCuts);
  }

  static NodeKind of(NodeSpec spec) {
    return new NodeKind(
        spec.gpuModel(), spec.gpus(), mebibytes(spec.gpuMemory().bytes()), spec.migCuts());
  }

  /** {@return the number of whole MiB in so many bytes} */
  static int mebibytes(long bytes) {
    return (int) Math.min(Integer.MAX_VALUE, bytes >>> MEBIBYTE_BITS);
  }

  /** {@return the number of MiB needed to hold so many bytes} */
  static int mebibytesFor(long bytes) {
    long whole = bytes >>> MEBIBYTE_BITS;
    return (int) Math.min(Integer.MAX_VALUE, whole << MEBIBYTE_BITS == bytes ? whole : whole + 1);
  }

  boolean isMig() {
    return !migCuts.isEmpty();
  }

  long untouched() {
    return GpuWord.untouched(gpuMebibytes);
  }

  int allSlices() {
    return migCuts.stream().mapToInt(cut -> cut.slices()).max().orElse(1);
  }

  /** {@return the memory of such an instance in MiB, in proportion to its slices} */
  int mebibytesOf(MigCut cut) {
    return (int) ((long) gpuMebibytes * cut.slices() / allSlices());
  }

  Optional<MigCut> cut(String profile) {
    return migCuts.stream().filter(cut -> cut.profile().equals(profile)).findFirst();
  }

  /** {@return the number of free places for instances, summed over all kinds} */
  int placesLeft(int slices) {
    int places = 0;
    for (MigCut cut : migCuts) {
      for (int start : cut.starts()) {
        places += (cut.mask(start) & slices) == 0 ? 1 : 0;
      }
    }
    return places;
  }

  /** {@return the start that leaves the most other places; empty if none is free} */
  Optional<Integer> bestStart(MigCut cut, int slices) {
    int best = -1;
    int most = -1;
    for (int start : cut.starts()) {
      int mask = cut.mask(start);
      int left = (mask & slices) == 0 ? placesLeft(slices | mask) : -1;
      if (left > most || (left == most && left >= 0)) {
        best = start;
        most = left;
      }
    }
    return best < 0 ? Optional.empty() : Optional.of(best);
  }

  /** Compares identity first: kinds of one fleet are mostly the same object, and compared often. */
  @Override
  public boolean equals(@Nullable Object other) {
    return other == this
        || (other instanceof NodeKind that
            && gpus == that.gpus
            && gpuMebibytes == that.gpuMebibytes
            && model.equals(that.model)
            && migCuts.equals(that.migCuts));
  }

  @Override
  public int hashCode() {
    return (model.hashCode() * 31 + gpus) * 31 + gpuMebibytes;
  }
}
