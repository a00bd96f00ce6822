package dev.vgpu.nvml;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;

/** NVML's data about one GPU. Immutable. */
record NvmlReading(
    GpuId gpu,
    GpuHealth health,
    String healthReason,
    Memory memory,
    Load load,
    Body body,
    List<GpuProcess> processes,
    List<NvLink> nvLinks,
    Map<String, String> properties)
    implements GpuReading {
  private static final Memory NO_MEMORY =
      new Memory(Optional.empty(), Optional.empty(), Optional.empty());
  private static final Load NO_LOAD =
      new Load(OptionalInt.empty(), OptionalInt.empty(), OptionalInt.empty(), OptionalInt.empty());
  private static final Body NO_BODY =
      new Body(
          OptionalInt.empty(),
          OptionalDouble.empty(),
          OptionalDouble.empty(),
          OptionalInt.empty(),
          OptionalInt.empty(),
          OptionalLong.empty(),
          OptionalLong.empty());

  /** Its memory. */
  record Memory(
      Optional<MemorySize> total, Optional<MemorySize> used, Optional<MemorySize> reserved) {}

  /** Its utilization, in percent. */
  record Load(OptionalInt busy, OptionalInt memory, OptionalInt encoder, OptionalInt decoder) {}

  /** Temperature, power, clocks, and memory errors. */
  record Body(
      OptionalInt celsius,
      OptionalDouble watts,
      OptionalDouble wattsLimit,
      OptionalInt clock,
      OptionalInt memoryClock,
      OptionalLong corrected,
      OptionalLong uncorrected) {}

  /** {@return the reading of a GPU that does not answer} */
  static NvmlReading lost(GpuId gpu, String reason) {
    return new NvmlReading(
        gpu, GpuHealth.LOST, reason, NO_MEMORY, NO_LOAD, NO_BODY, List.of(), List.of(), Map.of());
  }

  NvmlReading with(GpuHealth otherwise, String reason) {
    return new NvmlReading(
        gpu, otherwise, reason, memory, load, body, processes, nvLinks, properties);
  }

  @Override
  public Optional<MemorySize> memoryTotal() {
    return memory.total();
  }

  @Override
  public Optional<MemorySize> memoryUsed() {
    return memory.used();
  }

  @Override
  public Optional<MemorySize> memoryReserved() {
    return memory.reserved();
  }

  @Override
  public OptionalInt busyPercent() {
    return load.busy();
  }

  @Override
  public OptionalInt memoryBusyPercent() {
    return load.memory();
  }

  @Override
  public OptionalInt encoderPercent() {
    return load.encoder();
  }

  @Override
  public OptionalInt decoderPercent() {
    return load.decoder();
  }

  @Override
  public OptionalInt temperatureCelsius() {
    return body.celsius();
  }

  @Override
  public OptionalDouble powerWatts() {
    return body.watts();
  }

  @Override
  public OptionalDouble powerLimitWatts() {
    return body.wattsLimit();
  }

  @Override
  public OptionalInt clockMhz() {
    return body.clock();
  }

  @Override
  public OptionalInt memoryClockMhz() {
    return body.memoryClock();
  }

  @Override
  public OptionalLong eccCorrected() {
    return body.corrected();
  }

  @Override
  public OptionalLong eccUncorrected() {
    return body.uncorrected();
  }
}
