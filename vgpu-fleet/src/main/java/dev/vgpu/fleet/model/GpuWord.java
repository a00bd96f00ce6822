package dev.vgpu.fleet.model;

/**
 * The free capacity of one GPU, packed into one number: the percent for online and nearline shares,
 * the percent for offline shares, the memory in MiB, and the MIG slices in use. Sorting puts the
 * GPU with the smallest free share first.
 */
final class GpuWord {
  static final int FULL_PERCENT = 100;
  static final long TAKEN = 0;

  private static final int URGENT = 48;
  private static final int OFFLINE = 40;
  private static final int MEMORY = 12;
  private static final int PERCENT_MASK = 0x7f;
  private static final int MEMORY_MASK = 0xfffffff;
  private static final int SLICES_MASK = 0xfff;

  private GpuWord() {}

  static long untouched(int memoryMebibytes) {
    return word(FULL_PERCENT, FULL_PERCENT, memoryMebibytes, 0);
  }

  private static long word(int urgent, int offline, int memory, int slices) {
    return (long) urgent << URGENT | (long) offline << OFFLINE | (long) memory << MEMORY | slices;
  }

  static int urgent(long word) {
    return (int) (word >>> URGENT);
  }

  static int offline(long word) {
    return (int) (word >>> OFFLINE) & PERCENT_MASK;
  }

  static int memory(long word) {
    return (int) (word >>> MEMORY) & MEMORY_MASK;
  }

  static int slices(long word) {
    return (int) word & SLICES_MASK;
  }

  static boolean fits(long word, Shape shape, long untouched) {
    if (shape.isWhole()) {
      return word == untouched;
    }
    int free = shape.isOffline() ? offline(word) : urgent(word);
    return free >= shape.sharePercent() && memory(word) >= shape.mebibytesOn(memory(untouched));
  }

  /** {@return the GPU after a share of this shape was placed on it} */
  static long take(long word, Shape shape, long untouched) {
    if (shape.isWhole()) {
      return TAKEN;
    }
    int share = shape.sharePercent();
    return word(
        urgent(word) - (shape.isOffline() ? 0 : share),
        offline(word) - (shape.isOffline() ? share : 0),
        memory(word) - shape.mebibytesOn(memory(untouched)),
        slices(word));
  }

  /** {@return the GPU after a share of this shape was released} */
  static long give(long word, Shape shape, long untouched) {
    if (shape.isWhole()) {
      return untouched;
    }
    int share = shape.sharePercent();
    return word(
        urgent(word) + (shape.isOffline() ? 0 : share),
        offline(word) + (shape.isOffline() ? share : 0),
        memory(word) + shape.mebibytesOn(memory(untouched)),
        slices(word));
  }

  /** {@return the GPU with exactly these MIG slices in use} */
  static long cut(long word, int slices, int allSlices) {
    int free = FULL_PERCENT - FULL_PERCENT * Integer.bitCount(slices) / allSlices;
    return word(free, offline(word), memory(word), slices);
  }
}
