package dev.vgpu.request;

import static java.util.Objects.requireNonNull;

/**
 * The name of one GPU, stable across restarts: the driver's UUID, or {@code host} for this
 * machine's CPU. Immutable.
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

  // Written out because a record's generated equals() adds 10 ms to JVM start when first called,
  // and every opened pool calls this one.

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
