package dev.vgpu.fleet.model;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * What is free on a node, regardless of which GPU is which. Two nodes that can host the same
 * requests in the same ways have equal states. Immutable.
 */
public final class NodeState {
  private final NodeKind kind;
  private final long[] words;
  private final int cpuMillis;
  private final int hostMebibytes;
  private final int idlePercent;
  private final int untouchedGpus;
  private final int hash;

  NodeState(NodeKind kind, long[] sortedWords, int cpuMillis, int hostMebibytes) {
    this.kind = kind;
    this.words = sortedWords;
    this.cpuMillis = cpuMillis;
    this.hostMebibytes = hostMebibytes;
    int idle = 0;
    int untouched = 0;
    long whole = kind.untouched();
    for (long word : sortedWords) {
      idle += GpuWord.urgent(word);
      untouched += word == whole ? 1 : 0;
    }
    this.idlePercent = idle;
    this.untouchedGpus = untouched;
    this.hash = (Arrays.hashCode(sortedWords) * 31 + cpuMillis) * 31 + hostMebibytes;
  }

  /** {@return the kind of its GPUs} */
  public NodeKind kind() {
    return kind;
  }

  /** {@return the number of GPUs} */
  public int gpus() {
    return words.length;
  }

  /** {@return the model of its GPUs} */
  public String model() {
    return kind.model();
  }

  /** {@return the number of unused GPUs} */
  public int untouchedGpus() {
    return untouchedGpus;
  }

  /** {@return the free online and nearline shares of all GPUs, in percent of one GPU} */
  public int idlePercent() {
    return idlePercent;
  }

  /** {@return free processors, in thousandths} */
  public int cpuMillis() {
    return cpuMillis;
  }

  /** {@return free host memory in MiB} */
  public int hostMebibytes() {
    return hostMebibytes;
  }

  /**
   * {@return the free online and nearline share of a GPU, in percent}
   *
   * @param slot the GPU's index by free share; 0 has the least
   */
  public int freePercent(int slot) {
    return GpuWord.urgent(words[slot]);
  }

  /**
   * {@return the free memory of a GPU, in MiB}
   *
   * @param slot as for {@link #freePercent}
   */
  public int freeMebibytes(int slot) {
    return GpuWord.memory(words[slot]);
  }

  /**
   * {@return whether a GPU has room for one of a shape's shares}
   *
   * @param slot as for {@link #freePercent}
   * @param shape the shape
   */
  public boolean slotFits(int slot, Shape shape) {
    return GpuWord.fits(words[slot], shape, kind.untouched());
  }

  /**
   * {@return whether a shape fits this node}
   *
   * @param shape the shape
   */
  public boolean fits(Shape shape) {
    if (shape.cpuMillis() > cpuMillis
        || shape.hostMebibytes() > hostMebibytes
        || shape.gpus() > words.length) {
      return false;
    }
    if (shape.gpus() == 0) {
      return true;
    }
    if (!shape.takes(kind.model())
        || shape.isMig() != kind.isMig()
        || shape.memoryMebibytes() > kind.gpuMebibytes()) {
      return false;
    }
    return shape.isWhole() ? untouchedGpus >= shape.gpus() : nextSlot(shape, -1) >= 0;
  }

  /**
   * {@return the next slot at which the shape can begin; -1 if there is none} The shape takes that
   * slot and the next slots with room. GPUs in equal condition count once.
   *
   * @param shape the shape; its processors and host memory are not checked
   * @param after the previous result; -1 to begin
   */
  public int nextSlot(Shape shape, int after) {
    if (shape.isWhole()) {
      int first = words.length - untouchedGpus; // sorted, so unused GPUs are last
      return after < first && untouchedGpus >= shape.gpus() ? first : -1;
    }
    for (int slot = after + 1; slot < words.length; slot++) {
      boolean isRepeated = slot > 0 && slot > after + 1 && words[slot] == words[slot - 1];
      boolean isSame = after >= 0 && words[slot] == words[after];
      if (!isRepeated && !isSame && roomFrom(slot, shape)) {
        return slot;
      }
    }
    return -1;
  }

  private boolean roomFrom(int slot, Shape shape) {
    if (shape.isMig()) {
      return migStart(slot, shape) != null;
    }
    long whole = kind.untouched();
    if (!GpuWord.fits(words[slot], shape, whole)) {
      return false;
    }
    int room = 0;
    for (int i = slot; i < words.length && room < shape.gpus(); i++) {
      room += GpuWord.fits(words[i], shape, whole) ? 1 : 0;
    }
    return room == shape.gpus();
  }

  @Nullable Integer migStart(int slot, Shape shape) {
    return kind.cut(shape.migProfile())
        .filter(cut -> shape.memoryMebibytes() <= kind.mebibytesOf(cut))
        .flatMap(cut -> kind.bestStart(cut, GpuWord.slices(words[slot])))
        .orElse(null);
  }

  /** {@return the conditions of the GPUs that the shape takes from a slot on} */
  long[] taken(Shape shape, int slot) {
    long[] taken = new long[shape.gpus()];
    long whole = kind.untouched();
    int count = 0;
    for (int i = slot; count < taken.length; i++) {
      if (shape.isMig() || GpuWord.fits(words[i], shape, whole)) {
        taken[count++] = words[i];
      }
    }
    return taken;
  }

  /**
   * {@return the node after the shape is placed on it}
   *
   * @param shape a shape that fits
   * @param slot where it begins, from {@link #nextSlot}; ignored if it needs no GPU
   */
  public NodeState after(Shape shape, int slot) {
    long[] changed = words;
    if (shape.gpus() > 0) {
      changed = words.clone();
      long whole = kind.untouched();
      int count = 0;
      for (int i = slot; count < shape.gpus(); i++) {
        if (shape.isMig()) {
          changed[i] = cutAt(i, shape);
          count++;
        } else if (GpuWord.fits(changed[i], shape, whole)) {
          changed[i] = GpuWord.take(changed[i], shape, whole);
          count++;
        }
      }
      Arrays.sort(changed);
    }
    return new NodeState(
        kind, changed, cpuMillis - shape.cpuMillis(), hostMebibytes - shape.hostMebibytes());
  }

  private long cutAt(int slot, Shape shape) {
    Integer start = migStart(slot, shape);
    MigCut cut = kind.cut(shape.migProfile()).orElseThrow();
    if (start == null) {
      throw new IllegalArgumentException("no place for the instance: " + shape);
    }
    int slices = GpuWord.slices(words[slot]) | cut.mask(start);
    return GpuWord.cut(words[slot], slices, kind.allSlices());
  }

  /** {@return the number of free places for MIG instances of all kinds; 0 without MIG} */
  public int migPlaces() {
    int places = 0;
    for (int i = 0; kind.isMig() && i < words.length; i++) {
      places += kind.placesLeft(GpuWord.slices(words[i]));
    }
    return places;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other == this
        || (other instanceof NodeState that
            && hash == that.hash
            && cpuMillis == that.cpuMillis
            && hostMebibytes == that.hostMebibytes
            && kind.equals(that.kind)
            && Arrays.equals(words, that.words));
  }

  @Override
  public int hashCode() {
    return hash;
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder(kind.model()).append(" free");
    for (long word : words) {
      text.append(' ').append(GpuWord.urgent(word));
    }
    return text.append(" cpu=").append(cpuMillis).toString();
  }
}
