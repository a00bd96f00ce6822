package dev.vgpu.nvml.binding;

import com.sun.jna.Function;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;

/**
 * The functions of one NVML library, under their C names. Each returns an {@code nvmlReturn_t}; one
 * that the library does not have returns {@link #NVML_ERROR_FUNCTION_NOT_FOUND}. Safe for use by
 * several threads.
 *
 * <p>Structures are passed as memory with the offsets below; JNA's own structures are read by
 * reflection, which takes longer than everything else in a discovery.
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

  /** {@code sizeof(nvmlProcessInfo_t)}, as of the second version on. */
  public static final int PROCESS_BYTES = 24;

  /** {@code offsetof(nvmlProcessInfo_t, pid)}. */
  public static final int PROCESS_PID = 0;

  /** {@code offsetof(nvmlProcessInfo_t, usedGpuMemory)}. */
  public static final int PROCESS_MEMORY = 8;

  private final NativeLibrary library;

  /**
   * Binds a library.
   *
   * @param library an NVML
   */
  public Nvml(NativeLibrary library) {
    this.library = library;
  }

  /**
   * {@return whether the library has a function}
   *
   * @param name its C name
   */
  public boolean has(String name) {
    return find(name) != null;
  }

  private Function find(String name) {
    try {
      return library.getFunction(name);
    } catch (UnsatisfiedLinkError e) {
      return null;
    }
  }

  private int call(String name, Object... arguments) {
    Function function = find(name);
    return function == null ? NVML_ERROR_FUNCTION_NOT_FOUND : function.invokeInt(arguments);
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
   * {@return a code in words, or null}
   *
   * @param result the code
   */
  public String nvmlErrorString(int result) {
    Function function = find("nvmlErrorString");
    Pointer text = function == null ? null : function.invokePointer(new Object[] {result});
    return text == null ? null : text.getString(0, "UTF-8");
  }

  /**
   * {@return the code of {@code nvmlSystemGetDriverVersion}}
   *
   * @param version where the text goes
   * @param length of it in bytes
   */
  public int nvmlSystemGetDriverVersion(Pointer version, int length) {
    return call("nvmlSystemGetDriverVersion", version, length);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetCount_v2}}
   *
   * @param deviceCount unsigned int, out
   */
  public int nvmlDeviceGetCount_v2(Pointer deviceCount) {
    return call("nvmlDeviceGetCount_v2", deviceCount);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetHandleByIndex_v2}}
   *
   * @param index the device's
   * @param device nvmlDevice_t, out
   */
  public int nvmlDeviceGetHandleByIndex_v2(int index, Pointer device) {
    return call("nvmlDeviceGetHandleByIndex_v2", index, device);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetHandleByUUID}}
   *
   * @param uuid zero-terminated
   * @param device nvmlDevice_t, out
   */
  public int nvmlDeviceGetHandleByUUID(Pointer uuid, Pointer device) {
    return call("nvmlDeviceGetHandleByUUID", uuid, device);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetUUID}}
   *
   * @param device the device
   * @param uuid where the text goes
   * @param length of it in bytes
   */
  public int nvmlDeviceGetUUID(Pointer device, Pointer uuid, int length) {
    return call("nvmlDeviceGetUUID", device, uuid, length);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetName}}
   *
   * @param device the device
   * @param name where the text goes
   * @param length of it in bytes
   */
  public int nvmlDeviceGetName(Pointer device, Pointer name, int length) {
    return call("nvmlDeviceGetName", device, name, length);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetMemoryInfo}}
   *
   * @param device the device
   * @param memory nvmlMemory_t, out
   */
  public int nvmlDeviceGetMemoryInfo(Pointer device, Pointer memory) {
    return call("nvmlDeviceGetMemoryInfo", device, memory);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetMemoryInfo_v2}}
   *
   * @param device the device
   * @param memory nvmlMemory_v2_t with its version set, out
   */
  public int nvmlDeviceGetMemoryInfo_v2(Pointer device, Pointer memory) {
    return call("nvmlDeviceGetMemoryInfo_v2", device, memory);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetComputeRunningProcesses_v3}}
   *
   * @param device the device
   * @param count unsigned int, the room for infos, and how many there are
   * @param infos array of nvmlProcessInfo_t, out
   */
  public int nvmlDeviceGetComputeRunningProcesses_v3(Pointer device, Pointer count, Pointer infos) {
    return call("nvmlDeviceGetComputeRunningProcesses_v3", device, count, infos);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetComputeRunningProcesses_v2}}
   *
   * @param device the device
   * @param count unsigned int, the room for infos, and how many there are
   * @param infos array of nvmlProcessInfo_v2_t, out
   */
  public int nvmlDeviceGetComputeRunningProcesses_v2(Pointer device, Pointer count, Pointer infos) {
    return call("nvmlDeviceGetComputeRunningProcesses_v2", device, count, infos);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetComputeRunningProcesses}, the first version}
   *
   * @param device the device
   * @param count unsigned int, the room for infos, and how many there are
   * @param infos array of nvmlProcessInfo_v1_t, out
   */
  public int nvmlDeviceGetComputeRunningProcesses(Pointer device, Pointer count, Pointer infos) {
    return call("nvmlDeviceGetComputeRunningProcesses", device, count, infos);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetMigMode}}
   *
   * @param device the device
   * @param current unsigned int, out
   * @param pending unsigned int, out
   */
  public int nvmlDeviceGetMigMode(Pointer device, Pointer current, Pointer pending) {
    return call("nvmlDeviceGetMigMode", device, current, pending);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetMaxMigDeviceCount}}
   *
   * @param device the device
   * @param count unsigned int, out
   */
  public int nvmlDeviceGetMaxMigDeviceCount(Pointer device, Pointer count) {
    return call("nvmlDeviceGetMaxMigDeviceCount", device, count);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetMigDeviceHandleByIndex}}
   *
   * @param device the device
   * @param index the instance's, below the greatest count
   * @param migDevice nvmlDevice_t, out
   */
  public int nvmlDeviceGetMigDeviceHandleByIndex(Pointer device, int index, Pointer migDevice) {
    return call("nvmlDeviceGetMigDeviceHandleByIndex", device, index, migDevice);
  }
}
