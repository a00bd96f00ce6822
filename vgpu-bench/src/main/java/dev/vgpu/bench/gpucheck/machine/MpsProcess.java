package dev.vgpu.bench.gpucheck.machine;

import dev.vgpu.request.GpuId;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * A process of MPS on this machine: a control daemon, or a server. Immutable.
 *
 * @param pid its process id
 * @param pipes its pipe directory; empty if it is the default or unknown
 * @param devices the GPUs that it may see; empty if it may see all, or unknown
 */
public record MpsProcess(long pid, String pipes, String devices) {
  private static final String NAME = "nvidia-cuda-mps";
  private static final Path PROC = Path.of("/proc");

  /** {@return all current processes of MPS} */
  public static List<MpsProcess> all() throws IOException {
    List<MpsProcess> all = new ArrayList<>();
    try (DirectoryStream<Path> processes = Files.newDirectoryStream(PROC, "[1-9]*")) {
      for (Path process : processes) {
        of(process).ifPresent(all::add);
      }
    }
    return all;
  }

  private static Optional<MpsProcess> of(Path process) {
    long pid = Long.parseLong(String.valueOf(process.getFileName()));
    try {
      if (!Files.readString(process.resolve("comm")).startsWith(NAME)) {
        return Optional.empty();
      }
    } catch (IOException e) {
      return Optional.empty(); // it has ended
    }
    try {
      String variables = Files.readString(process.resolve("environ"), StandardCharsets.ISO_8859_1);
      return variables.isEmpty()
          ? Optional.empty() // it has ended, but was not waited for
          : Optional.of(
              new MpsProcess(
                  pid,
                  value(variables, "CUDA_MPS_PIPE_DIRECTORY"),
                  value(variables, "CUDA_VISIBLE_DEVICES")));
    } catch (IOException e) {
      return Optional.of(new MpsProcess(pid, "", "")); // it belongs to another user
    }
  }

  private static String value(String variables, String name) {
    for (String variable : variables.split("\0", -1)) {
      if (variable.startsWith(name + "=")) {
        return variable.substring(name.length() + 1);
      }
    }
    return "";
  }

  /** {@return whether it may serve a GPU, that is, unless it names others by their UUIDs} */
  public boolean mayServe(GpuId gpu) {
    String named = devices.toLowerCase(Locale.ROOT);
    for (String device : named.split(",", -1)) {
      boolean isUuid = device.startsWith("gpu-") || device.startsWith("mig-");
      if (!isUuid || gpu.value().toLowerCase(Locale.ROOT).startsWith(device)) {
        return true;
      }
    }
    return false;
  }
}
