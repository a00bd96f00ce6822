package dev.vgpu.nvml;

import dev.vgpu.nvml.binding.NativeCalls;
import dev.vgpu.nvml.binding.Nvml;
import dev.vgpu.nvml.binding.NvmlState;
import dev.vgpu.nvml.binding.NvmlTypes;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading.NvLink;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.UUID;

/**
 * Reads the state of a session's GPUs. Buffers are allocated once, and constant properties are read
 * once. A value that the driver does not report, or that is impossible, is empty. Confined to one
 * thread at a time, like its session.
 */
final class NvmlReader {
  private static final int MOST_PERCENT = 100;
  private static final int MOST_CELSIUS = 200;
  private static final int MOST_MILLIWATTS = 100_000_000;
  private static final int MOST_MHZ = 100_000;
  private static final double MILLI = 1_000;
  private static final UUID NO_CLUSTER = new UUID(0, 0);

  /** An NVML function that writes one number and returns its code. */
  private interface Call {
    int into(ByteBuffer number);
  }

  private final NvmlSession session;
  private final Nvml nvml;
  private final NvmlState state;
  private final ByteBuffer first = NativeCalls.memory(Long.BYTES);
  private final ByteBuffer second = NativeCalls.memory(Long.BYTES);
  private final ByteBuffer pending = NativeCalls.memory(Long.BYTES);
  private final ByteBuffer failed = NativeCalls.memory(Long.BYTES);
  private final ByteBuffer memory = NativeCalls.memory(Nvml.MEMORY_V2_BYTES);
  private final ByteBuffer rates = NativeCalls.memory(NvmlTypes.UTILIZATION_BYTES);
  private final ByteBuffer fabric = NativeCalls.memory(NvmlTypes.FABRIC_BYTES);
  private final NvmlFacts facts;
  private final NvmlProcesses processes;
  private final Map<Long, NvmlFacts.Facts> known = new HashMap<>();

  NvmlReader(NvmlSession session) {
    this.session = session;
    this.nvml = session.nvml();
    this.state = session.state();
    this.facts = new NvmlFacts(session);
    this.processes = new NvmlProcesses(session);
  }

  /** {@return one reading; a lost one if the GPU does not answer} */
  NvmlReading read(GpuId gpu) {
    first.putLong(0, 0);
    int found = session.find(gpu, first);
    if (found != Nvml.NVML_SUCCESS) {
      return NvmlReading.lost(gpu, session.words(found));
    }
    long device = first.getLong(0);
    int answer = session.probe(device);
    if (NvmlSession.isGone(answer)) {
      return NvmlReading.lost(gpu, session.words(answer));
    }
    NvmlFacts.Facts of =
        NvmlSession.isInstance(gpu)
            ? facts.read(device)
            : known.computeIfAbsent(device, facts::read);
    OptionalLong uncorrected = ecc(device, NvmlTypes.NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
    String fault = fault(device, uncorrected);
    return new NvmlReading(
        gpu,
        fault.isEmpty() ? GpuHealth.HEALTHY : GpuHealth.DEGRADED,
        fault,
        memory(device),
        load(device),
        body(device, uncorrected),
        processes.read(device),
        links(device, of),
        of.properties(modes(device)));
  }

  // ---- numbers

  private OptionalInt number(Call call, int most) {
    if (call.into(first) != Nvml.NVML_SUCCESS) {
      return OptionalInt.empty();
    }
    int number = first.getInt(0);
    return number < 0 || number > most ? OptionalInt.empty() : OptionalInt.of(number);
  }

  private OptionalDouble watts(Call call) {
    OptionalInt milliwatts = number(call, MOST_MILLIWATTS);
    return milliwatts.isPresent()
        ? OptionalDouble.of(milliwatts.getAsInt() / MILLI)
        : OptionalDouble.empty();
  }

  private OptionalLong ecc(long device, int type) {
    int code = state.nvmlDeviceGetTotalEccErrors(device, type, NvmlTypes.NVML_VOLATILE_ECC, first);
    return code != Nvml.NVML_SUCCESS || first.getLong(0) < 0
        ? OptionalLong.empty()
        : OptionalLong.of(first.getLong(0));
  }

  private NvmlReading.Memory memory(long device) {
    memory.putInt(0, Nvml.MEMORY_V2_VERSION);
    if (nvml.nvmlDeviceGetMemoryInfo_v2(device, memory) == Nvml.NVML_SUCCESS) {
      return new NvmlReading.Memory(
          size(memory.getLong(Nvml.MEMORY_V2_TOTAL)),
          size(memory.getLong(Nvml.MEMORY_V2_USED)),
          size(memory.getLong(Nvml.MEMORY_V2_RESERVED)));
    }
    int code = nvml.nvmlDeviceGetMemoryInfo(device, memory);
    if (code == Nvml.NVML_SUCCESS) {
      return new NvmlReading.Memory(
          size(memory.getLong(Nvml.MEMORY_TOTAL)),
          size(memory.getLong(Nvml.MEMORY_USED)),
          Optional.empty());
    }
    Optional<HostMemory> host = NvmlSession.hostMemory(code);
    return new NvmlReading.Memory(
        host.map(HostMemory::total), host.map(HostMemory::used), Optional.empty());
  }

  static Optional<MemorySize> size(long bytes) {
    return bytes < 0 ? Optional.empty() : Optional.of(MemorySize.ofBytes(bytes));
  }

  private NvmlReading.Load load(long device) {
    OptionalInt busy = OptionalInt.empty();
    OptionalInt memoryBusy = OptionalInt.empty();
    if (state.nvmlDeviceGetUtilizationRates(device, rates) == Nvml.NVML_SUCCESS) {
      busy = percent(rates.getInt(NvmlTypes.UTILIZATION_GPU));
      memoryBusy = percent(rates.getInt(NvmlTypes.UTILIZATION_MEMORY));
    }
    return new NvmlReading.Load(
        busy,
        memoryBusy,
        number(n -> state.nvmlDeviceGetEncoderUtilization(device, n, second), MOST_PERCENT),
        number(n -> state.nvmlDeviceGetDecoderUtilization(device, n, second), MOST_PERCENT));
  }

  static OptionalInt percent(int number) {
    return number < 0 || number > MOST_PERCENT ? OptionalInt.empty() : OptionalInt.of(number);
  }

  private NvmlReading.Body body(long device, OptionalLong uncorrected) {
    return new NvmlReading.Body(
        number(
            n -> state.nvmlDeviceGetTemperature(device, NvmlTypes.NVML_TEMPERATURE_GPU, n),
            MOST_CELSIUS),
        watts(n -> state.nvmlDeviceGetPowerUsage(device, n)),
        watts(n -> state.nvmlDeviceGetEnforcedPowerLimit(device, n)),
        number(n -> state.nvmlDeviceGetClockInfo(device, NvmlTypes.NVML_CLOCK_SM, n), MOST_MHZ),
        number(n -> state.nvmlDeviceGetClockInfo(device, NvmlTypes.NVML_CLOCK_MEM, n), MOST_MHZ),
        ecc(device, NvmlTypes.NVML_MEMORY_ERROR_TYPE_CORRECTED),
        uncorrected);
  }

  // ---- faults

  private String fault(long device, OptionalLong uncorrected) {
    if (uncorrected.orElse(0) > 0) {
      return uncorrected.getAsLong() + " errors of the memory could not be corrected";
    }
    int code = state.nvmlDeviceGetRemappedRows(device, first, second, pending, failed);
    if (code != Nvml.NVML_SUCCESS) {
      return "";
    }
    if (failed.getInt(0) == 1) {
      return "a row of the memory could not be retired";
    }
    return pending.getInt(0) == 1 ? "a row of the memory is retired at the next reset" : "";
  }

  // ---- modes that an administrator may switch, and what is known only after a while

  private Map<String, String> modes(long device) {
    Map<String, String> modes = new HashMap<>();
    if (nvml.nvmlDeviceGetMigMode(device, first, second) == Nvml.NVML_SUCCESS) {
      modes.put("mig_mode", first.getInt(0) == Nvml.NVML_DEVICE_MIG_ENABLE ? "on" : "off");
      if (first.getInt(0) != second.getInt(0)) {
        modes.put("mig_pending", second.getInt(0) == Nvml.NVML_DEVICE_MIG_ENABLE ? "on" : "off");
      }
    }
    if (state.nvmlDeviceGetComputeMode(device, first) == Nvml.NVML_SUCCESS) {
      modes.put("compute_mode", NvmlNames.computeMode(first.getInt(0)));
    }
    if (state.nvmlDeviceGetPersistenceMode(device, first) == Nvml.NVML_SUCCESS) {
      modes.put("persistence_mode", first.getInt(0) == 1 ? "on" : "off");
    }
    clique(device).ifPresent(clique -> modes.put("clique", clique));
    return modes;
  }

  /** {@return the clique in the NVLink fabric, once the GPU is registered there; empty if none} */
  private Optional<String> clique(long device) {
    if (state.nvmlDeviceGetGpuFabricInfo(device, fabric) != Nvml.NVML_SUCCESS
        || fabric.get(NvmlTypes.FABRIC_STATE) != NvmlTypes.NVML_GPU_FABRIC_STATE_COMPLETED
        || fabric.getInt(NvmlTypes.FABRIC_STATUS) != Nvml.NVML_SUCCESS) {
      return Optional.empty();
    }
    ByteBuffer id = fabric.duplicate().order(ByteOrder.BIG_ENDIAN);
    UUID cluster = new UUID(id.getLong(0), id.getLong(Long.BYTES));
    // A machine whose fabric is its own has no cluster.
    return cluster.equals(NO_CLUSTER)
        ? Optional.empty()
        : Optional.of(
            cluster + "." + Integer.toUnsignedString(fabric.getInt(NvmlTypes.FABRIC_CLIQUE)));
  }

  private List<NvLink> links(long device, NvmlFacts.Facts of) {
    List<NvLink> links = new ArrayList<>(of.linkEnds().size());
    for (int i = 0; i < of.linkEnds().size(); i++) {
      String end = of.linkEnds().get(i);
      int code = state.nvmlDeviceGetNvLinkState(device, i, first);
      boolean isActive = code == Nvml.NVML_SUCCESS && first.getInt(0) == 1;
      links.add(new NvLink(i, isActive, end.isEmpty() ? Optional.empty() : Optional.of(end)));
    }
    return links;
  }
}
