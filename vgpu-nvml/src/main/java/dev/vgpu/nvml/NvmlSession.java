package dev.vgpu.nvml;

import dev.vgpu.GpuDriverException;
import dev.vgpu.GpuId;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.nvml.binding.NativeCalls;
import dev.vgpu.nvml.binding.Nvml;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * NVML between one init and its shutdown. Devices are named by UUID; no handle outlives it.
 * Confined to one thread.
 */
final class NvmlSession implements AutoCloseable {
  /** More instances than any GPU can be cut into. */
  private static final int MOST_INSTANCES = 64;

  private static final int MOST_DEVICES = 1_024;
  private static final int MOST_PROCESSES = 16_384;

  private final Nvml nvml;
  private final ByteBuffer number = NativeCalls.memory(Long.BYTES);

  private NvmlSession(Nvml nvml) {
    this.nvml = nvml;
  }

  /**
   * Begins.
   *
   * @throws GpuDriverException if the library is no NVML, or its driver does not answer
   */
  static NvmlSession open(NvmlCandidate candidate) {
    Nvml nvml = load(candidate);
    if (!nvml.has("nvmlInit_v2")) {
      throw new GpuDriverException(
          "not an NVML library: it has no nvmlInit_v2: file=" + candidate.nvml(), null);
    }
    NvmlSession session = new NvmlSession(nvml);
    session.check(nvml.nvmlInit_v2(), "nvmlInit_v2");
    return session;
  }

  private static Nvml load(NvmlCandidate candidate) {
    try {
      NativeCalls.load(candidate.scratch());
    } catch (IOException e) {
      throw new GpuDriverException("cannot call a native library: " + e.getMessage(), e);
    }
    try {
      return new Nvml(NativeCalls.open(candidate.nvml()));
    } catch (UnsatisfiedLinkError e) {
      throw new GpuDriverException(
          "the NVML library cannot be loaded: " + e.getMessage() + ": file=" + candidate.nvml(), e);
    }
  }

  private void check(int code, String what) {
    if (code != Nvml.NVML_SUCCESS) {
      throw new GpuDriverException(what + " failed: " + words(code), code);
    }
  }

  Nvml nvml() {
    return nvml;
  }

  private String words(int code) {
    String text = nvml.nvmlErrorString(code);
    return text == null ? "no text" : text;
  }

  /** All GPUs; of one whose MIG mode is on, its instances besides. */
  List<PhysicalGpu> gpus(String provider) {
    check(nvml.nvmlDeviceGetCount_v2(number), "nvmlDeviceGetCount_v2");
    int count = Math.max(0, Math.min(MOST_DEVICES, number.getInt(0)));
    List<PhysicalGpu> gpus = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      check(nvml.nvmlDeviceGetHandleByIndex_v2(i, number), "nvmlDeviceGetHandleByIndex_v2");
      long device = number.getLong(0);
      if (isCut(device)) {
        gpus.add(CutGpu.of(gpu(device, provider)));
        for (long instance : instances(device)) {
          instance(instance, provider).ifPresent(gpus::add);
        }
      } else {
        gpus.add(gpu(device, provider));
      }
    }
    return gpus;
  }

  /** A MIG device; empty if it was destroyed since it was listed. */
  private Optional<PhysicalGpu> instance(long device, String provider) {
    try {
      return Optional.of(gpu(device, provider));
    } catch (GpuDriverException e) {
      if (e.code().orElse(0) == Nvml.NVML_ERROR_NOT_FOUND) {
        return Optional.empty();
      }
      throw e;
    }
  }

  private boolean isCut(long device) {
    ByteBuffer pending = NativeCalls.memory(Integer.BYTES);
    return nvml.nvmlDeviceGetMigMode(device, number, pending) == Nvml.NVML_SUCCESS
        && number.getInt(0) == Nvml.NVML_DEVICE_MIG_ENABLE;
  }

  private List<Long> instances(long device) {
    check(nvml.nvmlDeviceGetMaxMigDeviceCount(device, number), "nvmlDeviceGetMaxMigDeviceCount");
    int count = Math.max(0, Math.min(MOST_INSTANCES, number.getInt(0)));
    List<Long> instances = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      if (nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, i, number) == Nvml.NVML_SUCCESS) {
        instances.add(number.getLong(0));
      }
    }
    return instances;
  }

  private PhysicalGpu gpu(long device, String provider) {
    ByteBuffer text = NativeCalls.memory(Nvml.NVML_DEVICE_UUID_V2_BUFFER_SIZE);
    check(nvml.nvmlDeviceGetUUID(device, text, text.capacity()), "nvmlDeviceGetUUID");
    String uuid = text(text);
    check(nvml.nvmlDeviceGetName(device, text, text.capacity()), "nvmlDeviceGetName");
    String model = text(text);
    long[] totalAndUsable = memory(device);
    return new NvmlGpu(
        new GpuId(uuid),
        model,
        MemorySize.ofBytes(Math.max(0, totalAndUsable[0])),
        MemorySize.ofBytes(Math.max(0, totalAndUsable[1])),
        provider);
  }

  private static String text(ByteBuffer memory) {
    // The last byte is a zero, whatever the library wrote.
    memory.put(memory.capacity() - 1, (byte) 0);
    return NativeCalls.text(memory);
  }

  /** The second form tells apart what the driver keeps for itself; in the first that is used. */
  private long[] memory(long device) {
    ByteBuffer info = NativeCalls.memory(Nvml.MEMORY_V2_BYTES);
    info.putInt(0, Nvml.MEMORY_V2_VERSION);
    if (nvml.nvmlDeviceGetMemoryInfo_v2(device, info) == Nvml.NVML_SUCCESS) {
      long total = info.getLong(Nvml.MEMORY_V2_TOTAL);
      long taken = info.getLong(Nvml.MEMORY_V2_RESERVED) + info.getLong(Nvml.MEMORY_V2_USED);
      return new long[] {total, total - taken};
    }
    check(nvml.nvmlDeviceGetMemoryInfo(device, info), "nvmlDeviceGetMemoryInfo");
    long total = info.getLong(Nvml.MEMORY_TOTAL);
    return new long[] {total, total - info.getLong(Nvml.MEMORY_USED)};
  }

  /** The memory of a GPU that nobody uses now. */
  MemorySize freeMemory(GpuId gpu) {
    ByteBuffer uuid = NativeCalls.memory(gpu.value());
    check(nvml.nvmlDeviceGetHandleByUUID(uuid, number), "nvmlDeviceGetHandleByUUID");
    return MemorySize.ofBytes(Math.max(0, memory(number.getLong(0))[1]));
  }

  /** The processes that have a context on a GPU. */
  List<GpuProcess> processes(GpuId gpu) {
    ByteBuffer uuid = NativeCalls.memory(gpu.value());
    check(nvml.nvmlDeviceGetHandleByUUID(uuid, number), "nvmlDeviceGetHandleByUUID");
    long device = number.getLong(0);
    int room = 64;
    while (true) {
      ByteBuffer infos = NativeCalls.memory(room * Nvml.PROCESS_BYTES);
      number.putInt(0, room);
      int code = nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, number, infos);
      int bytes = Nvml.PROCESS_BYTES;
      if (code == Nvml.NVML_ERROR_FUNCTION_NOT_FOUND) {
        code = nvml.nvmlDeviceGetComputeRunningProcesses_v2(device, number, infos);
      }
      if (code == Nvml.NVML_ERROR_FUNCTION_NOT_FOUND) {
        code = nvml.nvmlDeviceGetComputeRunningProcesses(device, number, infos);
        bytes = Nvml.PROCESS_V1_BYTES;
      }
      if (code != Nvml.NVML_ERROR_INSUFFICIENT_SIZE || room >= MOST_PROCESSES) {
        check(code, "nvmlDeviceGetComputeRunningProcesses");
        return processes(infos, Math.max(0, Math.min(room, number.getInt(0))), bytes);
      }
      room *= 4;
    }
  }

  private static List<GpuProcess> processes(ByteBuffer infos, int count, int bytes) {
    List<GpuProcess> processes = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int at = i * bytes;
      long held = infos.getLong(at + Nvml.PROCESS_MEMORY);
      processes.add(
          new GpuProcess(
              Integer.toUnsignedLong(infos.getInt(at + Nvml.PROCESS_PID)),
              held < 0 ? Optional.empty() : Optional.of(MemorySize.ofBytes(held))));
    }
    return processes;
  }

  /** The driver's version; empty where it does not tell. */
  Optional<String> driverVersion() {
    ByteBuffer text = NativeCalls.memory(Nvml.NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);
    return nvml.nvmlSystemGetDriverVersion(text, text.capacity()) == Nvml.NVML_SUCCESS
        ? Optional.of(text(text))
        : Optional.empty();
  }

  @Override
  public void close() {
    nvml.nvmlShutdown();
  }
}
