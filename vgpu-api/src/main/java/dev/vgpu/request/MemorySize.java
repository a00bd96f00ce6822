package dev.vgpu.request;

import static java.util.Objects.requireNonNull;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An amount of memory. Immutable; ordered by size.
 *
 * @param bytes 0 or more
 */
public record MemorySize(long bytes) implements Comparable<MemorySize> {
  /** No memory. */
  public static final MemorySize ZERO = new MemorySize(0);

  private static final String TEXT = "(\\d+)\\s*([A-Za-z]+)";
  private static final String[] UNITS = {"B", "KiB", "MiB", "GiB", "TiB"};

  /**
   * Checks the amount.
   *
   * @throws IllegalArgumentException if {@code bytes} is negative
   */
  public MemorySize {
    if (bytes < 0) {
      throw new IllegalArgumentException("a memory size is negative: bytes=" + bytes);
    }
  }

  /**
   * {@return a size of exactly this many bytes}
   *
   * @param bytes 0 or more
   * @throws IllegalArgumentException if {@code bytes} is negative
   */
  public static MemorySize ofBytes(long bytes) {
    return new MemorySize(bytes);
  }

  /**
   * {@return a size of this many times 2<sup>20</sup> bytes}
   *
   * @param mebibytes 0 or more
   * @throws IllegalArgumentException if negative, or if the bytes do not fit a {@code long}
   */
  public static MemorySize ofMebibytes(long mebibytes) {
    return scaled(mebibytes, 20);
  }

  /**
   * {@return a size of this many times 2<sup>30</sup> bytes}
   *
   * @param gibibytes 0 or more
   * @throws IllegalArgumentException if negative, or if the bytes do not fit a {@code long}
   */
  public static MemorySize ofGibibytes(long gibibytes) {
    return scaled(gibibytes, 30);
  }

  /**
   * Parses the form that {@link #toString()} writes: a whole number and one of B, KiB, MiB, GiB,
   * TiB.
   *
   * @param text for example {@code 512MiB}; case does not matter
   * @return the size
   * @throws IllegalArgumentException if the text is not of that form
   */
  public static MemorySize fromString(String text) {
    requireNonNull(text, "text");
    Matcher matcher = Pattern.compile(TEXT).matcher(text.strip());
    if (matcher.matches()) {
      for (int unit = 0; unit < UNITS.length; unit++) {
        if (UNITS[unit].equalsIgnoreCase(matcher.group(2))) {
          return scaled(parseAmount(text, matcher.group(1)), 10 * unit);
        }
      }
    }
    throw new IllegalArgumentException(
        "not a memory size: '" + text + "' (write for example 512MiB or 4GiB)");
  }

  /**
   * {@return the sum}
   *
   * @param other the size to add
   * @throws ArithmeticException if the sum does not fit a {@code long}
   */
  public MemorySize plus(MemorySize other) {
    return new MemorySize(Math.addExact(bytes, other.bytes));
  }

  @Override
  public int compareTo(MemorySize other) {
    return Long.compare(bytes, other.bytes);
  }

  /**
   * {@return the size in the largest unit that gives a whole number, for example {@code 512MiB}}
   */
  @Override
  public String toString() {
    long amount = bytes;
    int unit = 0;
    while (amount != 0 && amount % 1024 == 0 && unit < UNITS.length - 1) {
      amount /= 1024;
      unit++;
    }
    return amount + UNITS[unit];
  }

  private static long parseAmount(String text, String digits) {
    try {
      return Long.parseLong(digits);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("a memory size is too large: '" + text + "'", e);
    }
  }

  private static MemorySize scaled(long amount, int shift) {
    if (amount < 0) {
      throw new IllegalArgumentException("a memory size is negative: " + amount);
    }
    if (amount > Long.MAX_VALUE >> shift) {
      throw new IllegalArgumentException("a memory size is too large: " + amount);
    }
    return new MemorySize(amount << shift);
  }
}
