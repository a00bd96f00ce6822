package dev.vgpu.bench.gpucheck.machine;

import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * One GPU's NVML readings before and after a call of {@code nvidia-smi}, and the output of that
 * call. A value that changes must only lie between the two readings. Both sides may round sizes.
 * Immutable.
 *
 * @param gpu the GPU
 * @param before NVML's reading before
 * @param after NVML's reading after
 * @param smi the fields that nvidia-smi reported
 * @param smiProcesses the memory of each process, in MiB; null if it was not queried
 */
public record SmiComparison(
    PhysicalGpu gpu,
    GpuReading before,
    GpuReading after,
    Map<String, String> smi,
    @Nullable Map<Long, String> smiProcesses) {
  /** Either side may round a size up, down, or to the nearest. */
  private static final double ROUNDING_MIB = 1;

  private static final double MIB = 1 << 20;

  /**
   * A value that both sides report, or one of them.
   *
   * @param field nvidia-smi's name of it
   * @param nvml NVML's value
   * @param smi nvidia-smi's value
   * @param isSame whether the two agree
   */
  public record Value(String field, String nvml, String smi, boolean isSame) {
    /** {@return the difference in words} */
    public String difference() {
      return field + ": NVML says " + nvml + ", nvidia-smi says " + smi;
    }
  }

  /** {@return all values; fields that nvidia-smi does not report are not compared} */
  public List<Value> values() {
    List<Value> values = new ArrayList<>();
    word(values, NvidiaSmi.NAME, Optional.of(gpu.model()), Function.identity());
    word(values, NvidiaSmi.DRIVER, property("driver_version"), Function.identity());
    size(values, NvidiaSmi.TOTAL, before.memoryTotal(), after.memoryTotal());
    size(values, NvidiaSmi.RESERVED, before.memoryReserved(), after.memoryReserved());
    size(values, NvidiaSmi.USED, before.memoryUsed(), after.memoryUsed());
    word(
        values,
        NvidiaSmi.MIG_MODE,
        property("mig_mode"),
        mode -> mode.equals("Enabled") ? "on" : "off");
    word(
        values,
        NvidiaSmi.COMPUTE_MODE,
        property("compute_mode"),
        mode -> mode.toLowerCase(Locale.ROOT).replace('_', ' '));
    Map<Long, String> processes = smiProcesses;
    if (processes != null) {
      processes(values, processes);
    }
    return values;
  }

  private Optional<String> property(String name) {
    return Optional.ofNullable(after.properties().get(name));
  }

  private void word(
      List<Value> into, String field, Optional<String> nvml, Function<String, String> ours) {
    String told = smi.get(field);
    if (told != null) {
      boolean isSame = nvml.filter(ours.apply(told)::equals).isPresent();
      into.add(new Value(field, nvml.orElse("nothing"), told, isSame));
    }
  }

  private void size(
      List<Value> into, String field, Optional<MemorySize> first, Optional<MemorySize> second) {
    String told = smi.get(field);
    if (told != null) {
      into.add(new Value(field, range(first, second), told + " MiB", lies(told, first, second)));
    }
  }

  private static String range(Optional<MemorySize> first, Optional<MemorySize> second) {
    String before = mebibytes(first);
    String after = mebibytes(second);
    return before.equals(after) ? after : before + " to " + after;
  }

  private static String mebibytes(Optional<MemorySize> size) {
    return size.map(told -> String.format(Locale.ROOT, "%.1f MiB", told.bytes() / MIB))
        .orElse("nothing");
  }

  /** Whether a number of MiB lies between two sizes, within rounding. */
  private static boolean lies(
      String told, Optional<MemorySize> first, Optional<MemorySize> second) {
    if (first.isEmpty() || second.isEmpty() || !told.matches("[0-9]{1,12}")) {
      return false;
    }
    double least = Math.min(first.get().bytes(), second.get().bytes()) / MIB - ROUNDING_MIB;
    double most = Math.max(first.get().bytes(), second.get().bytes()) / MIB + ROUNDING_MIB;
    double mebibytes = Double.parseDouble(told);
    return mebibytes >= least && mebibytes <= most;
  }

  // ---- processes

  private static Map<Long, GpuReading.GpuProcess> byPid(GpuReading reading) {
    Map<Long, GpuReading.GpuProcess> processes = new LinkedHashMap<>();
    reading.processes().forEach(process -> processes.put(process.pid(), process));
    return processes;
  }

  private void processes(List<Value> into, Map<Long, String> told) {
    Map<Long, GpuReading.GpuProcess> first = byPid(before);
    Map<Long, GpuReading.GpuProcess> second = byPid(after);
    Set<Long> always = new TreeSet<>(first.keySet());
    always.retainAll(second.keySet());
    Set<Long> ever = new TreeSet<>(first.keySet());
    ever.addAll(second.keySet());
    into.add(
        new Value(
            "processes",
            pids(second.keySet()),
            pids(told.keySet()),
            told.keySet().containsAll(always) && ever.containsAll(told.keySet())));
    first.forEach(
        (pid, one) -> {
          GpuReading.GpuProcess other = second.get(pid);
          String size = told.get(pid);
          if (other != null && size != null && NvidiaSmi.isTold(size)) {
            into.add(
                new Value(
                    "used_gpu_memory of pid " + pid,
                    range(one.memory(), other.memory()),
                    size + " MiB",
                    lies(size, one.memory(), other.memory())));
          }
        });
  }

  private static String pids(Set<Long> pids) {
    return pids.isEmpty()
        ? "none"
        : pids.stream().sorted().map(String::valueOf).collect(Collectors.joining(" "));
  }
}
