package dev.vgpu;

import static java.util.Objects.requireNonNull;

/**
 * The name of one GPU, stable over restarts: the UUID that the driver gives, or {@code host} for
 * this machine's CPU. Immutable.
 *
 * @param value the name; not blank
 */
public record GpuId(String value) {
  /**
   * Checks the name.
   *
   * @throws IllegalArgumentException if the name is blank
   */
  public GpuId {
    requireNonNull(value, "value");
    if (value.isBlank()) {
      throw new IllegalArgumentException("a GPU's name is blank");
    }
  }

  // Written out: the first record whose equality is asked for costs a JVM's start 10 ms, and every
  // pool that is opened asks for this one's.

  @Override
  public boolean equals(Object other) {
    return other instanceof GpuId id && id.value.equals(value);
  }

  @Override
  public int hashCode() {
    return value.hashCode();
  }

  /** {@return the bare name} */
  @Override
  public String toString() {
    return value;
  }
}
