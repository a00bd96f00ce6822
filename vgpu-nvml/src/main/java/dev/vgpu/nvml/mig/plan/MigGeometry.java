package dev.vgpu.nvml.mig.plan;

import dev.vgpu.request.MemorySize;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * How GPUs of one model can be partitioned. Read from NVML if it reports this; the tables here are
 * a fallback. Immutable; two are equal if their slices and profiles are.
 *
 * @param computeSlices how many compute slices a whole GPU has
 * @param memorySlices how many memory slices it has, at most {@value #MOST_MEMORY_SLICES}
 * @param profiles the profiles of instances
 */
public record MigGeometry(int computeSlices, int memorySlices, List<MigProfile> profiles) {
  static final int MOST_MEMORY_SLICES = 12;
  private static final MemorySize ANY_MEMORY = MemorySize.ofMebibytes(1024);
  private static final int FOUR = 4;
  private static final int SEVEN = 7;
  private static final int EIGHT = 8;
  private static final int H100_SMS = 132;
  private static final int A100_SMS = 108;

  /** The SMs that its instances can use. */
  private static final int A100_INSTANCES_SMS = 98;

  /** Copies the list, and refuses impossible values. */
  public MigGeometry {
    profiles = List.copyOf(profiles);
    if (computeSlices < 1 || memorySlices < 1 || memorySlices > MOST_MEMORY_SLICES) {
      throw new IllegalArgumentException(
          "no such geometry: computeSlices=" + computeSlices + " memorySlices=" + memorySlices);
    }
    for (MigProfile profile : profiles) {
      for (int start : profile.starts()) {
        if (start < 0 || start + profile.memorySlices() > memorySlices) {
          throw new IllegalArgumentException("a placement outside the GPU: " + profile);
        }
      }
    }
  }

  /**
   * {@return the table for A100, H100, H200 and similar GPUs}
   *
   * @param memory of the whole GPU
   * @param multiprocessors of the whole GPU
   */
  public static MigGeometry ofSeven(MemorySize memory, int multiprocessors) {
    Table table = new Table(memory, multiprocessors, SEVEN, EIGHT);
    table.add(19, "1g", 1, 1, 7, 0, 1, 2, 3, 4, 5, 6);
    table.add(20, "1g+me", 1, 1, 1, 0, 1, 2, 3, 4, 5, 6);
    table.add(15, "1g", 1, 2, 4, 0, 2, 4, 6);
    table.add(14, "2g", 2, 2, 3, 0, 2, 4);
    table.add(9, "3g", 3, 4, 2, 0, 4);
    table.add(5, "4g", 4, 4, 1, 0);
    table.add(0, "7g", 7, 8, 1, 0);
    return new MigGeometry(SEVEN, EIGHT, table.profiles);
  }

  /**
   * {@return the table for A30}
   *
   * @param memory of the whole GPU
   * @param multiprocessors of the whole GPU
   */
  public static MigGeometry ofFour(MemorySize memory, int multiprocessors) {
    Table table = new Table(memory, multiprocessors, FOUR, FOUR);
    table.add(14, "1g", 1, 1, 4, 0, 1, 2, 3);
    table.add(21, "1g+me", 1, 1, 1, 0, 1, 2, 3);
    table.add(5, "2g", 2, 2, 2, 0, 2);
    table.add(6, "2g+me", 2, 2, 1, 0, 2);
    table.add(0, "4g", 4, 4, 1, 0);
    return new MigGeometry(FOUR, FOUR, table.profiles);
  }

  /**
   * {@return the table for GPUs with this many compute slices} Its places are right, its sizes not.
   *
   * @param computeSlices how many a whole GPU has
   */
  public static Optional<MigGeometry> known(int computeSlices) {
    return switch (computeSlices) {
      case SEVEN -> Optional.of(ofSeven(ANY_MEMORY, H100_SMS));
      case FOUR -> Optional.of(ofFour(ANY_MEMORY, H100_SMS));
      default -> Optional.empty();
    };
  }

  /**
   * {@return the SMs of a profile as observed on A100, H100 and H200; 0 if unknown} They are not
   * proportional to the slices.
   */
  private static int knownMultiprocessors(int id, int ofWholeGpu) {
    boolean isA100 = ofWholeGpu == A100_INSTANCES_SMS || ofWholeGpu == A100_SMS;
    if (!isA100 && ofWholeGpu != H100_SMS) {
      return 0;
    }
    return switch (id) {
      case 19, 20 -> isA100 ? 14 : 16;
      case 15 -> isA100 ? 14 : 26;
      case 14 -> isA100 ? 28 : 32;
      case 9 -> isA100 ? 42 : 60;
      case 5 -> isA100 ? 56 : 64;
      case 0 -> isA100 ? A100_INSTANCES_SMS : H100_SMS;
      default -> 0;
    };
  }

  /** Collects the rows of a table. */
  private static final class Table {
    private final List<MigProfile> profiles = new ArrayList<>();
    private final MemorySize memory;
    private final int multiprocessors;
    private final int computeSlices;
    private final int memorySlices;

    Table(MemorySize memory, int multiprocessors, int computeSlices, int memorySlices) {
      this.memory = memory;
      this.multiprocessors = multiprocessors;
      this.computeSlices = computeSlices;
      this.memorySlices = memorySlices;
    }

    void add(int id, String shape, int compute, int size, int most, Integer... starts) {
      MemorySize part = MemorySize.ofBytes(memory.bytes() / memorySlices * size);
      String gibibytes = Math.round(part.bytes() / (double) (1L << 30)) + "gb";
      String name =
          shape.endsWith("+me")
              ? shape.replace("+me", "." + gibibytes + "+me")
              : shape + "." + gibibytes;
      int known = computeSlices == SEVEN ? knownMultiprocessors(id, multiprocessors) : 0;
      int sms = known > 0 ? known : multiprocessors * compute / computeSlices;
      profiles.add(
          new MigProfile(id, name, compute, size, most, List.of(starts), part, Math.max(1, sms)));
    }
  }

  /**
   * {@return whether an instance may be created there}
   *
   * @param taken what is taken already
   * @param profile its profile
   * @param start its first memory slice
   */
  public boolean isLegal(MigOccupancy taken, MigProfile profile, int start) {
    return profile.starts().contains(start)
        && (taken.memoryMask() & profile.mask(start)) == 0
        && taken.computeSlices() + profile.computeSlices() <= computeSlices
        && !(taken.media() && profile.hasMedia());
  }

  /**
   * {@return the starts at which an instance may be created}
   *
   * @param taken what is taken already
   * @param profile its profile
   */
  public List<Integer> legalStarts(MigOccupancy taken, MigProfile profile) {
    return profile.starts().stream().filter(start -> isLegal(taken, profile, start)).toList();
  }

  /**
   * {@return the profile with an id}
   *
   * @param id as NVML numbers profiles
   */
  public Optional<MigProfile> profile(int id) {
    return profiles.stream().filter(profile -> profile.id() == id).findFirst();
  }

  /**
   * {@return the profile with a name}
   *
   * @param name with or without the memory, {@code 3g.40gb} or {@code 3g}; without it, the smallest
   */
  public Optional<MigProfile> profile(String name) {
    return profiles.stream()
        .filter(
            profile ->
                profile.name().equalsIgnoreCase(name)
                    || profile.name().toLowerCase(Locale.ROOT).startsWith(name + "."))
        .min(
            Comparator.comparing((MigProfile profile) -> profile.hasMedia())
                .thenComparing(MigProfile::memorySlices));
  }

  /**
   * {@return the profiles that are large enough, without media engines, the smallest first}
   *
   * @param memory at least
   * @param computePercent percent of the GPU's compute slices, 0 to 100, at least
   */
  public List<MigProfile> enough(MemorySize memory, int computePercent) {
    return profiles.stream()
        .filter(profile -> !profile.hasMedia())
        .filter(profile -> profile.isEnough(memory, computePercent, computeSlices))
        .sorted(
            Comparator.comparingInt(MigProfile::computeSlices)
                .thenComparingInt(MigProfile::memorySlices))
        .toList();
  }

  /**
   * {@return the first of {@link #enough}; empty if no profile is large enough}
   *
   * @param memory at least
   * @param computePercent percent of the GPU's compute slices, 0 to 100, at least
   */
  public Optional<MigProfile> smallest(MemorySize memory, int computePercent) {
    return enough(memory, computePercent).stream().findFirst();
  }
}
