package dev.vgpu.watch;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;

/**
 * A driver's readings of a GPU at one moment. A reading is empty if the driver does not provide it,
 * or if its value cannot be true. Immutable. May gain methods.
 *
 * @see dev.vgpu.GpuPool#readings()
 */
public interface GpuReading {
  /** {@return the GPU} */
  GpuId gpu();

  /** {@return whether the GPU answers, and whether its driver reports faults} */
  GpuHealth health();

  /** {@return why it is not healthy, in words; empty if it is} */
  String healthReason();

  /** {@return its total memory} */
  default Optional<MemorySize> memoryTotal() {
    return Optional.empty();
  }

  /**
   * {@return the memory in use; excludes the driver's own if the driver reports that separately}
   */
  default Optional<MemorySize> memoryUsed() {
    return Optional.empty();
  }

  /** {@return the memory that the driver keeps for itself} */
  default Optional<MemorySize> memoryReserved() {
    return Optional.empty();
  }

  /** {@return the percent of recent time in which kernels ran; 0 to 100} */
  default OptionalInt busyPercent() {
    return OptionalInt.empty();
  }

  /** {@return the percent of recent time in which its memory was read or written; 0 to 100} */
  default OptionalInt memoryBusyPercent() {
    return OptionalInt.empty();
  }

  /** {@return the load of its video encoder; 0 to 100 percent} */
  default OptionalInt encoderPercent() {
    return OptionalInt.empty();
  }

  /** {@return the load of its video decoder; 0 to 100 percent} */
  default OptionalInt decoderPercent() {
    return OptionalInt.empty();
  }

  /** {@return its temperature, in degrees Celsius} */
  default OptionalInt temperatureCelsius() {
    return OptionalInt.empty();
  }

  /** {@return the power that it draws, in watts} */
  default OptionalDouble powerWatts() {
    return OptionalDouble.empty();
  }

  /** {@return its power limit, in watts} */
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

  /** {@return the memory errors corrected since the driver was loaded} */
  default OptionalLong eccCorrected() {
    return OptionalLong.empty();
  }

  /** {@return the memory errors since the driver was loaded that could not be corrected} */
  default OptionalLong eccUncorrected() {
    return OptionalLong.empty();
  }

  /** {@return the processes that have a context on it, whoever started them} */
  default List<GpuProcess> processes() {
    return List.of();
  }

  /** {@return its NVLink connections, ordered by number} */
  default List<NvLink> nvLinks() {
    return List.of();
  }

  /**
   * {@return further readings by name, for example {@code driver_version}, {@code cuda_version},
   * {@code architecture}, {@code compute_capability}, {@code pci}, {@code numa_node}, {@code
   * memory} (only for a GPU without memory of its own: {@code the host's}), {@code clique} (in an
   * NVLink fabric of several machines: the cluster's UUID, a dot, and the clique's number), {@code
   * compute_mode}, {@code mig_mode}; in this order}
   */
  default Map<String, String> properties() {
    return Map.of();
  }

  /**
   * A process that has a context on a GPU.
   *
   * @param pid in the driver's pid namespace, which is the machine's
   * @param memory the memory that it holds there
   * @param percent the multiprocessors' recent time that it used; 0 to 100
   */
  record GpuProcess(long pid, Optional<MemorySize> memory, OptionalInt percent) {}

  /**
   * An NVLink connection.
   *
   * @param number its number, from 0
   * @param isActive whether it is up
   * @param peer its other end: a {@link GpuId} if it is a GPU of this machine, otherwise words such
   *     as {@code switch}
   */
  record NvLink(int number, boolean isActive, Optional<String> peer) {}
}
