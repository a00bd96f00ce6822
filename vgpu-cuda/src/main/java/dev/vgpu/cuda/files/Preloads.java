package dev.vgpu.cuda.files;

import java.nio.file.Path;
import java.util.Map;

/**
 * What is loaded into each program under a lease: the hook, and behind it what stands in for NVML,
 * where this jar has that for the machine. Immutable.
 *
 * @param hook the hook
 * @param nvml what stands in for NVML
 */
public record Preloads(HookLibrary hook, HookLibrary nvml) {
  /** {@return the libraries of this jar, or those that the environment names} */
  public static Preloads of(Map<String, String> environment) {
    return new Preloads(new HookLibrary(environment), HookLibrary.nvml(environment));
  }

  /**
   * {@return the value of {@code LD_PRELOAD}: the libraries, then what the program has there
   * itself}
   *
   * @param runDirectory where they are unpacked to, if they are not there yet
   * @throws dev.vgpu.VgpuException if there is no hook, or one cannot be unpacked
   */
  public String variable(Path runDirectory) {
    String all = hook.in(runDirectory).toString();
    if (nvml.missing().isEmpty()) {
      all += ":" + nvml.in(runDirectory);
    }
    return all + ":${LD_PRELOAD}";
  }
}
