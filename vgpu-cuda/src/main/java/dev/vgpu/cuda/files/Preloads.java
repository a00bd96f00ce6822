package dev.vgpu.cuda.files;

import java.nio.file.Path;
import java.util.Map;

/**
 * The libraries that are loaded into each program under a lease: the hook, then the NVML stand-in
 * if this jar has one for the machine. Immutable.
 *
 * @param hook the hook
 * @param nvml the NVML stand-in
 */
public record Preloads(HookLibrary hook, HookLibrary nvml) {
  /** {@return the libraries of this jar, or those that the environment names} */
  public static Preloads of(Map<String, String> environment) {
    return new Preloads(new HookLibrary(environment), HookLibrary.nvml(environment));
  }

  /**
   * {@return the value of {@code LD_PRELOAD}: these libraries, then the program's own preloads}
   *
   * @param runDirectory unpacked here if they are not there yet
   * @throws dev.vgpu.VgpuException if there is no hook, or a library cannot be unpacked
   */
  public String variable(Path runDirectory) {
    String all = hook.in(runDirectory).toString();
    if (nvml.missing().isEmpty()) {
      all += ":" + nvml.in(runDirectory);
    }
    return all + ":${LD_PRELOAD}";
  }
}
