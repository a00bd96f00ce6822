package dev.vgpu;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;

/**
 * A driver's readings of a GPU at one moment. A reading that the driver does not tell, or that
 * cannot be true, is empty. Immutable. May gain methods.
 *
 * @see GpuPool#readings()
 */
public interface GpuReading {
  /** {@return the GPU} */
  GpuId gpu();

  /** {@return whether it answers, and tells of faults} */
  GpuHealth health();

  /** {@return why it is not healthy, in words; empty if it is} */
  String healthReason();

  /** {@return all its memory} */
  default Optional<MemorySize> memoryTotal() {
    return Optional.empty();
  }

  /** {@return the memory in use, without the driver's own where that is told apart} */
  default Optional<MemorySize> memoryUsed() {
    return Optional.empty();
  }

  /** {@return the memory that the driver keeps for itself} */
  default Optional<MemorySize> memoryReserved() {
    return Optional.empty();
  }

  /** {@return the percent of the time, of late, in which kernels ran; 0 to 100} */
  default OptionalInt busyPercent() {
    return OptionalInt.empty();
  }

  /** {@return the percent of the time in which its memory was read or written; 0 to 100} */
  default OptionalInt memoryBusyPercent() {
    return OptionalInt.empty();
  }

  /** {@return how much its video encoder is used; 0 to 100 percent} */
  default OptionalInt encoderPercent() {
    return OptionalInt.empty();
  }

  /** {@return how much its video decoder is used; 0 to 100 percent} */
  default OptionalInt decoderPercent() {
    return OptionalInt.empty();
  }

  /** {@return how warm it is, in degrees Celsius} */
  default OptionalInt temperatureCelsius() {
    return OptionalInt.empty();
  }

  /** {@return the power that it draws, in watts} */
  default OptionalDouble powerWatts() {
    return OptionalDouble.empty();
  }

  /** {@return the power that it may draw, in watts} */
  default OptionalDouble powerLimitWatts() {
    return OptionalDouble.empty();
  }

  /** {@return the clock of its multiprocessors, in MHz} */
  default OptionalInt clockMhz() {
    return OptionalInt.empty();
  }

  /** {@return the clock of its memory, in MHz} */
  default OptionalInt memoryClockMhz() {
    return OptionalInt.empty();
  }

  /** {@return errors of its memory that were corrected since the driver was loaded} */
  default OptionalLong eccCorrected() {
    return OptionalLong.empty();
  }

  /** {@return errors of its memory that could not be corrected since the driver was loaded} */
  default OptionalLong eccUncorrected() {
    return OptionalLong.empty();
  }

  /** {@return the processes that have a context on it, whoever started them} */
  default List<GpuProcess> processes() {
    return List.of();
  }

  /** {@return its NVLink connections, in their order} */
  default List<NvLink> nvLinks() {
    return List.of();
  }

  /**
   * {@return further readings, by name, for example {@code driver_version}, {@code cuda_version},
   * {@code architecture}, {@code compute_capability}, {@code pci}, {@code numa_node}, {@code
   * mig_mode}, {@code compute_mode}; in this order}
   */
  default Map<String, String> properties() {
    return Map.of();
  }

  /**
   * A process that has a context on a GPU.
   *
   * @param pid in the pid namespace of the driver, which is the machine's
   * @param memory the memory that it holds there
   * @param percent of the multiprocessors' time that it had of late; 0 to 100
   */
  record GpuProcess(long pid, Optional<MemorySize> memory, OptionalInt percent) {}

  /**
   * An NVLink connection.
   *
   * @param number which one, from 0
   * @param isActive whether it is up
   * @param peer its other end: a GPU's {@link GpuId}, where it is one of this machine, or words
   *     such as {@code switch}
   */
  record NvLink(int number, boolean isActive, Optional<String> peer) {}
}
