package dev.vgpu.nvml;

import dev.vgpu.GpuDriverException;
import dev.vgpu.nvml.binding.NativeCalls;
import dev.vgpu.nvml.binding.Nvml;
import dev.vgpu.nvml.binding.NvmlMig;
import dev.vgpu.nvml.binding.NvmlState;
import dev.vgpu.nvml.binding.NvmlTypes;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * NVML between one init and its shutdown. Devices are named by UUID; no handle outlives the
 * session. Confined to one thread.
 */
public final class NvmlSession implements AutoCloseable {
  /** More instances than any GPU can have. */
  private static final int MOST_INSTANCES = 64;

  private static final Logger log = LoggerFactory.getLogger(NvmlSession.class);

  private static final int MOST_DEVICES = 1_024;

  private final Nvml nvml;
  private final NvmlState state;
  private final ByteBuffer number = NativeCalls.memory(Long.BYTES);
  private final ByteBuffer memoryInfo = NativeCalls.memory(Nvml.MEMORY_V2_BYTES);

  /** Handles by GPU; valid as long as the session. */
  private final Map<GpuId, Long> handles = new HashMap<>();

  private final List<String> leftOut = new ArrayList<>();

  private NvmlSession(Nvml nvml) {
    this.nvml = nvml;
    this.state = new NvmlState(nvml);
  }

  /**
   * Loads and initializes NVML.
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

  /** {@return the driver's own text for a code, with its number} */
  String words(int code) {
    String text = nvml.nvmlErrorString(code);
    return (text == null || text.isEmpty() ? "no text" : text) + " (NVML error " + code + ")";
  }

  /** {@return the functions of the library} */
  public Nvml nvml() {
    return nvml;
  }

  NvmlState state() {
    return state;
  }

  /** {@return whether a code means that the GPU, or the whole driver, no longer answers} */
  public static boolean isGone(int code) {
    return switch (code) {
      case NvmlTypes.NVML_ERROR_GPU_IS_LOST,
          NvmlTypes.NVML_ERROR_RESET_REQUIRED,
          NvmlTypes.NVML_ERROR_UNINITIALIZED,
          NvmlTypes.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
          Nvml.NVML_ERROR_DRIVER_NOT_LOADED ->
          true;
      default -> false;
    };
  }

  /** {@return the number of whole GPUs that the driver reports; 0 if it does not} */
  int count() {
    return nvml.nvmlDeviceGetCount_v2(number) == Nvml.NVML_SUCCESS ? number.getInt(0) : 0;
  }

  /**
   * {@return all GPUs, with the instances of those in MIG mode} A GPU that does not answer is left
   * out.
   *
   * @throws GpuDriverException if there are GPUs, but none can be used
   */
  List<PhysicalGpu> gpus(String provider) {
    check(nvml.nvmlDeviceGetCount_v2(number), "nvmlDeviceGetCount_v2");
    int told = number.getInt(0);
    List<PhysicalGpu> gpus = new ArrayList<>();
    leftOut.clear();
    String failure = "it reports GPUs without a UUID";
    for (int i = 0; i < most(told); i++) {
      try {
        int code = nvml.nvmlDeviceGetHandleByIndex_v2(i, number);
        if (code == NvmlTypes.NVML_ERROR_INVALID_ARGUMENT) {
          failure = "nvmlDeviceGetHandleByIndex_v2 failed: " + words(code);
          break; // there are not so many
        }
        check(code, "nvmlDeviceGetHandleByIndex_v2");
        long device = number.getLong(0);
        boolean isCut = isCut(device);
        Optional<PhysicalGpu> whole = gpu(device, provider);
        if (whole.isPresent()) {
          gpus.add(isCut ? CutGpu.of(whole.get()) : whole.get());
        }
        for (long each : isCut ? instances(device) : Set.<Long>of()) {
          instance(each, provider)
              .filter(found -> gpus.stream().noneMatch(other -> other.id().equals(found.id())))
              .ifPresent(gpus::add);
        }
      } catch (GpuDriverException e) {
        failure = String.valueOf(e.getMessage());
        log.warn("a GPU is left out: index={}: {}", i, failure);
        leftOut.add("a GPU is left out: index=" + i + ": " + failure);
      }
    }
    if (gpus.isEmpty() && told != 0) {
      throw new GpuDriverException("none of the driver's GPUs can be used: " + failure, null);
    }
    return gpus;
  }

  /** {@return the number of indices to try, where the driver reports so many GPUs} */
  private static int most(int told) {
    return told < 0 ? MOST_DEVICES : Math.min(MOST_DEVICES, told);
  }

  /** {@return one line for each GPU that the last listing left out, with the reason} */
  List<String> leftOut() {
    return List.copyOf(leftOut);
  }

  /** {@return a MIG device; empty if it was destroyed since it was listed} */
  private Optional<PhysicalGpu> instance(long device, String provider) {
    try {
      return gpu(device, provider);
    } catch (GpuDriverException e) {
      int code = e.code().orElse(0);
      if (code == Nvml.NVML_ERROR_NOT_FOUND || code == NvmlTypes.NVML_ERROR_INVALID_ARGUMENT) {
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

  /**
   * {@return handles of the MIG devices} Indices shift when instances are created or destroyed:
   * going up, none is missed if one is created meanwhile; going down, none if one is destroyed.
   */
  private Set<Long> instances(long device) {
    check(nvml.nvmlDeviceGetMaxMigDeviceCount(device, number), "nvmlDeviceGetMaxMigDeviceCount");
    int count = Math.max(0, Math.min(MOST_INSTANCES, number.getInt(0)));
    Set<Long> instances = new LinkedHashSet<>();
    for (int i = 0; i < 2 * count; i++) {
      int index = i < count ? i : 2 * count - 1 - i;
      if (nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index, number) == Nvml.NVML_SUCCESS) {
        instances.add(number.getLong(0));
      }
    }
    return instances;
  }

  /** {@return a GPU; empty if its UUID is invalid} */
  private Optional<PhysicalGpu> gpu(long device, String provider) {
    ByteBuffer text = NativeCalls.memory(Nvml.NVML_DEVICE_UUID_V2_BUFFER_SIZE);
    check(nvml.nvmlDeviceGetUUID(device, text, text.capacity()), "nvmlDeviceGetUUID");
    String uuid = text(text);
    if (!uuid.startsWith("GPU-") && !uuid.startsWith("MIG-")) {
      return Optional.empty();
    }
    check(nvml.nvmlDeviceGetName(device, text, text.capacity()), "nvmlDeviceGetName");
    String model = text(text);
    long[] totalAndUsable = memory(device);
    long total = Math.max(0, totalAndUsable[0]);
    return Optional.of(
        new NvmlGpu(
            new GpuId(uuid),
            model,
            MemorySize.ofBytes(total),
            MemorySize.ofBytes(Math.max(0, Math.min(total, totalAndUsable[1]))),
            provider));
  }

  private static String text(ByteBuffer memory) {
    // Terminate the text, whatever the library wrote.
    memory.put(memory.capacity() - 1, (byte) 0);
    return NativeCalls.text(memory);
  }

  /**
   * {@return total and free bytes} The first version counts the driver's reserve as used. A GPU
   * without memory of its own has the host's.
   */
  private long[] memory(long device) {
    ByteBuffer info = memoryInfo;
    info.putInt(0, Nvml.MEMORY_V2_VERSION);
    if (nvml.nvmlDeviceGetMemoryInfo_v2(device, info) == Nvml.NVML_SUCCESS) {
      long total = info.getLong(Nvml.MEMORY_V2_TOTAL);
      long taken =
          Math.max(0, info.getLong(Nvml.MEMORY_V2_RESERVED))
              + Math.max(0, info.getLong(Nvml.MEMORY_V2_USED));
      return new long[] {total, total - taken};
    }
    int code = nvml.nvmlDeviceGetMemoryInfo(device, info);
    Optional<HostMemory> host = hostMemory(code);
    if (host.isPresent()) {
      return new long[] {host.get().total().bytes(), host.get().available().bytes()};
    }
    check(code, "nvmlDeviceGetMemoryInfo");
    long total = info.getLong(Nvml.MEMORY_TOTAL);
    return new long[] {total, total - Math.max(0, info.getLong(Nvml.MEMORY_USED))};
  }

  /** {@return the memory of a GPU whose memory NVML does not report, by its code; else empty} */
  static Optional<HostMemory> hostMemory(int code) {
    return code == Nvml.NVML_ERROR_NOT_SUPPORTED ? HostMemory.read() : Optional.empty();
  }

  /** {@return whether a device has no memory of its own, but the host's} */
  boolean sharesHostMemory(long device) {
    memoryInfo.putInt(0, Nvml.MEMORY_V2_VERSION);
    return nvml.nvmlDeviceGetMemoryInfo_v2(device, memoryInfo) != Nvml.NVML_SUCCESS
        && hostMemory(probe(device)).isPresent();
  }

  /** {@return whether it is a MIG instance, which may come and go during a session} */
  static boolean isInstance(GpuId gpu) {
    return gpu.value().startsWith("MIG-");
  }

  /** Looks up a GPU's handle, and returns NVML's code. */
  int find(GpuId gpu, ByteBuffer device) {
    Long known = handles.get(gpu);
    if (known != null) {
      device.putLong(0, known);
      return Nvml.NVML_SUCCESS;
    }
    int code = lookUp(gpu, device);
    if (code == Nvml.NVML_SUCCESS && !isInstance(gpu)) {
      handles.put(gpu, device.getLong(0));
    }
    return code;
  }

  /**
   * {@return NVML's code for a look-up of a GPU's handle, which is not kept} If one GPU has fallen
   * off, NVML may find none by UUID. Then the others are found by their indices.
   *
   * @param gpu which GPU
   * @param device nvmlDevice_t, out
   */
  public int lookUp(GpuId gpu, ByteBuffer device) {
    int code = nvml.nvmlDeviceGetHandleByUUID(NativeCalls.memory(gpu.value()), device);
    if (code == Nvml.NVML_SUCCESS || code == Nvml.NVML_ERROR_NOT_FOUND) {
      return code;
    }
    int count = most(count());
    for (int i = 0; i < count; i++) {
      if (nvml.nvmlDeviceGetHandleByIndex_v2(i, number) == Nvml.NVML_SUCCESS) {
        for (long each : withInstances(number.getLong(0), isInstance(gpu))) {
          if (uuid(each).filter(gpu.value()::equals).isPresent()) {
            device.putLong(0, each);
            return Nvml.NVML_SUCCESS;
          }
        }
      }
    }
    return code;
  }

  private Set<Long> withInstances(long device, boolean withInstances) {
    Set<Long> all = new LinkedHashSet<>(Set.of(device));
    try {
      if (withInstances && isCut(device)) {
        all.addAll(instances(device));
      }
    } catch (GpuDriverException e) {
      log.debug("the instances of a GPU cannot be listed", e);
    }
    return all;
  }

  private long device(GpuId gpu) {
    check(find(gpu, number), "nvmlDeviceGetHandleByUUID");
    return number.getLong(0);
  }

  /** {@return the code of a cheap call, which shows whether a device answers} */
  int probe(long device) {
    return nvml.nvmlDeviceGetMemoryInfo(device, memoryInfo);
  }

  /** {@return the UUID of the GPU at a PCI bus id; empty if there is none} */
  Optional<String> uuidAt(String busId) {
    ByteBuffer id = NativeCalls.memory(busId);
    ByteBuffer handle = NativeCalls.memory(Long.BYTES);
    if (state.nvmlDeviceGetHandleByPciBusId_v2(id, handle) != Nvml.NVML_SUCCESS) {
      return Optional.empty();
    }
    return uuid(handle.getLong(0));
  }

  /** {@return a device's UUID; empty if the driver does not tell} */
  private Optional<String> uuid(long device) {
    ByteBuffer text = NativeCalls.memory(Nvml.NVML_DEVICE_UUID_V2_BUFFER_SIZE);
    return nvml.nvmlDeviceGetUUID(device, text, text.capacity()) == Nvml.NVML_SUCCESS
        ? Optional.of(text(text))
        : Optional.empty();
  }

  /** {@return the UUID of a MIG device's GPU; empty for a whole GPU} */
  Optional<String> parent(long device) {
    ByteBuffer answer = NativeCalls.memory(Long.BYTES);
    if (state.nvmlDeviceIsMigDeviceHandle(device, answer) != Nvml.NVML_SUCCESS
        || answer.getInt(0) == 0
        || state.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device, answer)
            != Nvml.NVML_SUCCESS) {
      return Optional.empty();
    }
    return uuid(answer.getLong(0));
  }

  /**
   * {@return the place of a MIG device: GPU, GPU instance and compute instance, separated by
   * slashes; empty if unknown}
   */
  Optional<String> place(GpuId instance) {
    ByteBuffer device = NativeCalls.memory(Long.BYTES);
    ByteBuffer part = NativeCalls.memory(Long.BYTES);
    if (find(instance, device) != Nvml.NVML_SUCCESS) {
      return Optional.empty();
    }
    long handle = device.getLong(0);
    NvmlMig mig = new NvmlMig(nvml);
    return mig.nvmlDeviceGetGpuInstanceId(handle, device) == Nvml.NVML_SUCCESS
            && mig.nvmlDeviceGetComputeInstanceId(handle, part) == Nvml.NVML_SUCCESS
        ? parent(handle).map(gpu -> gpu + "/" + device.getInt(0) + "/" + part.getInt(0))
        : Optional.empty();
  }

  /** {@return the free memory of a GPU} */
  MemorySize freeMemory(GpuId gpu) {
    return MemorySize.ofBytes(Math.max(0, memory(device(gpu))[1]));
  }

  /** {@return the processes that have a context on a GPU} */
  List<GpuReading.GpuProcess> processes(GpuId gpu) {
    return new NvmlProcesses(this).read(device(gpu));
  }

  /** {@return the driver's version; empty if it does not tell} */
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
