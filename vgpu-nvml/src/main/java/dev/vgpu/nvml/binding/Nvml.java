package dev.vgpu.nvml.binding;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The functions of one NVML library, under their C names. Each returns an {@code nvmlReturn_t}. If
 * the library lacks the function, the result is {@link #NVML_ERROR_FUNCTION_NOT_FOUND}. Safe for
 * use by several threads.
 *
 * <p>Memory comes from {@link NativeCalls#memory}, structures use the offsets below, and a device
 * handle is the library's own number.
 */
public final class Nvml {
  /** {@code NVML_SUCCESS}. */
  public static final int NVML_SUCCESS = 0;

  /** {@code NVML_ERROR_NOT_SUPPORTED}. */
  public static final int NVML_ERROR_NOT_SUPPORTED = 3;

  /** {@code NVML_ERROR_NOT_FOUND}. */
  public static final int NVML_ERROR_NOT_FOUND = 6;

  /** {@code NVML_ERROR_INSUFFICIENT_SIZE}. */
  public static final int NVML_ERROR_INSUFFICIENT_SIZE = 7;

  /** {@code NVML_ERROR_DRIVER_NOT_LOADED}. */
  public static final int NVML_ERROR_DRIVER_NOT_LOADED = 9;

  /** {@code NVML_ERROR_FUNCTION_NOT_FOUND}. */
  public static final int NVML_ERROR_FUNCTION_NOT_FOUND = 13;

  /** {@code NVML_DEVICE_UUID_V2_BUFFER_SIZE}. */
  public static final int NVML_DEVICE_UUID_V2_BUFFER_SIZE = 96;

  /** {@code NVML_DEVICE_NAME_V2_BUFFER_SIZE}. */
  public static final int NVML_DEVICE_NAME_V2_BUFFER_SIZE = 96;

  /** {@code NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE}. */
  public static final int NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE = 80;

  /** {@code NVML_DEVICE_MIG_ENABLE}. */
  public static final int NVML_DEVICE_MIG_ENABLE = 1;

  /** {@code NVML_VALUE_NOT_AVAILABLE}. */
  public static final long NVML_VALUE_NOT_AVAILABLE = -1;

  /** {@code sizeof(nvmlMemory_t)}. */
  public static final int MEMORY_BYTES = 24;

  /** {@code offsetof(nvmlMemory_t, total)}. */
  public static final int MEMORY_TOTAL = 0;

  /** {@code offsetof(nvmlMemory_t, used)}. */
  public static final int MEMORY_USED = 16;

  /** {@code sizeof(nvmlMemory_v2_t)}. */
  public static final int MEMORY_V2_BYTES = 40;

  /** {@code nvmlMemory_v2}, the value of the structure's field {@code version}. */
  public static final int MEMORY_V2_VERSION = MEMORY_V2_BYTES | 2 << 24;

  /** {@code offsetof(nvmlMemory_v2_t, total)}. */
  public static final int MEMORY_V2_TOTAL = 8;

  /** {@code offsetof(nvmlMemory_v2_t, reserved)}. */
  public static final int MEMORY_V2_RESERVED = 16;

  /** {@code offsetof(nvmlMemory_v2_t, used)}. */
  public static final int MEMORY_V2_USED = 32;

  /** {@code sizeof(nvmlProcessInfo_v1_t)}. */
  public static final int PROCESS_V1_BYTES = 16;

  /** {@code sizeof(nvmlProcessInfo_t)}, from its second version on. */
  public static final int PROCESS_BYTES = 24;

  /** {@code offsetof(nvmlProcessInfo_t, pid)}. */
  public static final int PROCESS_PID = 0;

  /** {@code offsetof(nvmlProcessInfo_t, usedGpuMemory)}. */
  public static final int PROCESS_MEMORY = 8;

  private final long library;
  private final Map<String, Long> functions = new ConcurrentHashMap<>();

  /**
   * Binds a library.
   *
   * @param library an NVML that {@link NativeCalls} opened
   */
  public Nvml(long library) {
    this.library = library;
  }

  /**
   * {@return whether the library has a function}
   *
   * @param name its C name
   */
  public boolean has(String name) {
    return find(name) != 0;
  }

  private long find(String name) {
    Long known = functions.get(name);
    if (known == null) {
      known = NativeCalls.symbol(library, name);
      functions.put(name, known);
    }
    return known;
  }

  /** Calls a function and returns its code. {@link NvmlState} has more functions. */
  int call(String name, Object... arguments) {
    long function = find(name);
    return function == 0
        ? NVML_ERROR_FUNCTION_NOT_FOUND
        : (int) NativeCalls.call(function, arguments);
  }

  /** {@return the code of {@code nvmlInit_v2}} */
  public int nvmlInit_v2() {
    return call("nvmlInit_v2");
  }

  /** {@return the code of {@code nvmlShutdown}} */
  public int nvmlShutdown() {
    return call("nvmlShutdown");
  }

  /**
   * {@return the text for a code, or null}
   *
   * @param result the code
   */
  public String nvmlErrorString(int result) {
    long function = find("nvmlErrorString");
    return function == 0 ? null : NativeCalls.textAt(NativeCalls.call(function, result));
  }

  /**
   * {@return the code of {@code nvmlSystemGetDriverVersion}}
   *
   * @param version receives the text
   * @param length its size in bytes
   */
  public int nvmlSystemGetDriverVersion(ByteBuffer version, int length) {
    return call("nvmlSystemGetDriverVersion", version, length);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetCount_v2}}
   *
   * @param deviceCount unsigned int, out
   */
  public int nvmlDeviceGetCount_v2(ByteBuffer deviceCount) {
    return call("nvmlDeviceGetCount_v2", deviceCount);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetHandleByIndex_v2}}
   *
   * @param index the device's
   * @param device nvmlDevice_t, out
   */
  public int nvmlDeviceGetHandleByIndex_v2(int index, ByteBuffer device) {
    return call("nvmlDeviceGetHandleByIndex_v2", index, device);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetHandleByUUID}}
   *
   * @param uuid zero-terminated
   * @param device nvmlDevice_t, out
   */
  public int nvmlDeviceGetHandleByUUID(ByteBuffer uuid, ByteBuffer device) {
    return call("nvmlDeviceGetHandleByUUID", uuid, device);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetUUID}}
   *
   * @param device the device
   * @param uuid receives the text
   * @param length its size in bytes
   */
  public int nvmlDeviceGetUUID(long device, ByteBuffer uuid, int length) {
    return call("nvmlDeviceGetUUID", device, uuid, length);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetName}}
   *
   * @param device the device
   * @param name receives the text
   * @param length its size in bytes
   */
  public int nvmlDeviceGetName(long device, ByteBuffer name, int length) {
    return call("nvmlDeviceGetName", device, name, length);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetMemoryInfo}}
   *
   * @param device the device
   * @param memory nvmlMemory_t, out
   */
  public int nvmlDeviceGetMemoryInfo(long device, ByteBuffer memory) {
    return call("nvmlDeviceGetMemoryInfo", device, memory);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetMemoryInfo_v2}}
   *
   * @param device the device
   * @param memory nvmlMemory_v2_t with its version set, out
   */
  public int nvmlDeviceGetMemoryInfo_v2(long device, ByteBuffer memory) {
    return call("nvmlDeviceGetMemoryInfo_v2", device, memory);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetComputeRunningProcesses_v3}}
   *
   * @param device the device
   * @param count unsigned int; in: room in infos; out: how many there are
   * @param infos array of nvmlProcessInfo_t, out
   */
  public int nvmlDeviceGetComputeRunningProcesses_v3(
      long device, ByteBuffer count, ByteBuffer infos) {
    return call("nvmlDeviceGetComputeRunningProcesses_v3", device, count, infos);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetComputeRunningProcesses_v2}}
   *
   * @param device the device
   * @param count unsigned int; in: room in infos; out: how many there are
   * @param infos array of nvmlProcessInfo_v2_t, out
   */
  public int nvmlDeviceGetComputeRunningProcesses_v2(
      long device, ByteBuffer count, ByteBuffer infos) {
    return call("nvmlDeviceGetComputeRunningProcesses_v2", device, count, infos);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetComputeRunningProcesses}, the first version}
   *
   * @param device the device
   * @param count unsigned int; in: room in infos; out: how many there are
   * @param infos array of nvmlProcessInfo_v1_t, out
   */
  public int nvmlDeviceGetComputeRunningProcesses(long device, ByteBuffer count, ByteBuffer infos) {
    return call("nvmlDeviceGetComputeRunningProcesses", device, count, infos);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetMigMode}}
   *
   * @param device the device
   * @param current unsigned int, out
   * @param pending unsigned int, out
   */
  public int nvmlDeviceGetMigMode(long device, ByteBuffer current, ByteBuffer pending) {
    return call("nvmlDeviceGetMigMode", device, current, pending);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetMaxMigDeviceCount}}
   *
   * @param device the device
   * @param count unsigned int, out
   */
  public int nvmlDeviceGetMaxMigDeviceCount(long device, ByteBuffer count) {
    return call("nvmlDeviceGetMaxMigDeviceCount", device, count);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetMigDeviceHandleByIndex}}
   *
   * @param device the device
   * @param index the instance's, below the maximum count
   * @param migDevice nvmlDevice_t, out
   */
  public int nvmlDeviceGetMigDeviceHandleByIndex(long device, int index, ByteBuffer migDevice) {
    return call("nvmlDeviceGetMigDeviceHandleByIndex", device, index, migDevice);
  }
}
