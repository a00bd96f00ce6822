package dev.vgpu.nvml;

import dev.vgpu.nvml.binding.NativeCalls;
import dev.vgpu.nvml.binding.Nvml;
import dev.vgpu.nvml.binding.NvmlState;
import dev.vgpu.nvml.binding.NvmlTypes;
import dev.vgpu.watch.GpuReading;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;

/**
 * Reads the processes that have a context on a GPU, and their use of it. Confined to its session's
 * thread.
 */
final class NvmlProcesses {
  private static final int MOST_PROCESSES = 16_384;
  private static final int USUAL_PROCESSES = 128;
  private static final long WINDOW_US = 1_000_000;

  private final Nvml nvml;
  private final NvmlState state;
  private final ByteBuffer number = NativeCalls.memory(Long.BYTES);
  private ByteBuffer infos = NativeCalls.memory(USUAL_PROCESSES * Nvml.PROCESS_BYTES);
  private ByteBuffer samples = NativeCalls.memory(USUAL_PROCESSES * NvmlTypes.SAMPLE_BYTES);

  /** By device: samples after this time are read, in microseconds of the driver's clock. */
  private final Map<Long, Long> latest = new HashMap<>();

  NvmlProcesses(NvmlSession session) {
    this.nvml = session.nvml();
    this.state = session.state();
  }

  /** {@return the processes of a device; none if the driver does not report them} */
  List<GpuReading.GpuProcess> read(long device) {
    int bytes = list(device);
    if (bytes == 0) {
      return List.of();
    }
    int count = number.getInt(0);
    if (count <= 0 || count > infos.capacity() / bytes) {
      return List.of(); // more than there was room for cannot be true
    }
    Map<Long, Integer> percents = percents(device);
    List<GpuReading.GpuProcess> processes = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      long pid = Integer.toUnsignedLong(infos.getInt(i * bytes + Nvml.PROCESS_PID));
      if (pid != 0) {
        Integer percent = percents.get(pid);
        processes.add(
            new GpuReading.GpuProcess(
                pid,
                NvmlReader.size(infos.getLong(i * bytes + Nvml.PROCESS_MEMORY)),
                percent == null ? OptionalInt.empty() : NvmlReader.percent(percent)));
      }
    }
    return processes;
  }

  /** Reads the list into a buffer that grows. Returns the item size; 0: no list. */
  private int list(long device) {
    for (; ; ) {
      int bytes = Nvml.PROCESS_BYTES;
      number.putInt(0, infos.capacity() / bytes);
      int code = nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, number, infos);
      if (code == Nvml.NVML_ERROR_FUNCTION_NOT_FOUND) {
        code = nvml.nvmlDeviceGetComputeRunningProcesses_v2(device, number, infos);
      }
      if (code == Nvml.NVML_ERROR_FUNCTION_NOT_FOUND) {
        bytes = Nvml.PROCESS_V1_BYTES;
        code = nvml.nvmlDeviceGetComputeRunningProcesses(device, number, infos);
      }
      if (code == Nvml.NVML_SUCCESS) {
        return bytes;
      }
      int room = infos.capacity() / Nvml.PROCESS_BYTES;
      if (code != Nvml.NVML_ERROR_INSUFFICIENT_SIZE || room >= MOST_PROCESSES) {
        return 0;
      }
      infos = NativeCalls.memory(room * 4 * Nvml.PROCESS_BYTES);
    }
  }

  /** {@return each process's use of the SMs in the last second, by its latest sample} */
  private Map<Long, Integer> percents(long device) {
    long since = latest.getOrDefault(device, 0L);
    int code;
    for (; ; ) {
      number.putInt(0, samples.capacity() / NvmlTypes.SAMPLE_BYTES);
      code = state.nvmlDeviceGetProcessUtilization(device, samples, number, since);
      int room = samples.capacity() / NvmlTypes.SAMPLE_BYTES;
      if (code != Nvml.NVML_ERROR_INSUFFICIENT_SIZE || room >= MOST_PROCESSES) {
        break;
      }
      samples = NativeCalls.memory(room * 4 * NvmlTypes.SAMPLE_BYTES);
    }
    if (code != Nvml.NVML_SUCCESS) {
      return Map.of();
    }
    int room = samples.capacity() / NvmlTypes.SAMPLE_BYTES;
    int count = Math.max(0, Math.min(room, number.getInt(0)));
    Map<Long, Integer> percents = new HashMap<>();
    Map<Long, Long> taken = new HashMap<>();
    long last = since;
    for (int i = 0; i < count; i++) {
      int at = i * NvmlTypes.SAMPLE_BYTES;
      long pid = Integer.toUnsignedLong(samples.getInt(at + NvmlTypes.SAMPLE_PID));
      long time = samples.getLong(at + NvmlTypes.SAMPLE_TIME);
      if (time > taken.getOrDefault(pid, 0L)) {
        taken.put(pid, time);
        percents.put(pid, samples.getInt(at + NvmlTypes.SAMPLE_SM));
        last = Math.max(last, time);
      }
    }
    latest.put(device, Math.max(0, last - WINDOW_US));
    return percents;
  }
}
