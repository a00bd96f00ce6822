package dev.vgpu.cuda;

import dev.vgpu.VgpuException;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * The device nodes of NVIDIA's driver: the common ones, and those of some GPUs, found by their
 * UUIDs in what the driver tells below {@code /proc}. Immutable.
 */
final class DeviceNodes {
  private static final List<String> COMMON = List.of("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools");

  /** To configure and to watch MIG are an administrator's. */
  private static final List<String> NOT_FOR_TENANTS = List.of("nvidia-cap1", "nvidia-cap2");

  private final Path dev;
  private final Path driver;

  DeviceNodes(Path dev, Path driver) {
    this.dev = dev;
    this.driver = driver;
  }

  static DeviceNodes ofThisMachine() {
    return new DeviceNodes(Path.of("/dev"), Path.of("/proc/driver/nvidia"));
  }

  /**
   * {@return the nodes that a process needs in order to use some GPUs; none where the driver is not
   * there} For a MIG device, those of all GPUs and instances: which is whose cannot be told from
   * the UUID.
   *
   * @param visible as in {@code CUDA_VISIBLE_DEVICES}
   */
  List<Path> of(String visible) {
    List<Path> nodes = new ArrayList<>();
    if (!Files.exists(dev.resolve("nvidiactl"))) {
      return nodes;
    }
    try {
      COMMON.stream().map(dev::resolve).filter(Files::exists).forEach(nodes::add);
      boolean isMig = visible.contains("MIG-");
      addGpus(visible.toLowerCase(Locale.ROOT), isMig, nodes);
      Path capabilities = dev.resolve("nvidia-caps");
      if (isMig && Files.isDirectory(capabilities)) {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(capabilities, "nvidia-cap*")) {
          files.forEach(file -> addCapability(file, nodes));
        }
      }
    } catch (IOException e) {
      throw new VgpuException("cannot find the GPUs' device nodes: " + e.getMessage(), e);
    }
    return nodes;
  }

  private static void addCapability(Path file, List<Path> nodes) {
    if (!NOT_FOR_TENANTS.contains(String.valueOf(file.getFileName()))) {
      nodes.add(file);
    }
  }

  private void addGpus(String visible, boolean all, List<Path> nodes) throws IOException {
    Path gpus = driver.resolve("gpus");
    if (!Files.isDirectory(gpus)) {
      throw new VgpuException("NVIDIA's driver lists no GPU: directory=" + gpus);
    }
    try (DirectoryStream<Path> directories = Files.newDirectoryStream(gpus)) {
      for (Path directory : directories) {
        List<String> lines = Files.readAllLines(directory.resolve("information"));
        Optional<String> uuid = value(lines, "GPU UUID");
        Optional<String> minor = value(lines, "Device Minor");
        if (minor.isPresent()
            && (all
                || uuid.map(id -> id.toLowerCase(Locale.ROOT))
                    .filter(visible::contains)
                    .isPresent())) {
          nodes.add(dev.resolve("nvidia" + minor.get()));
        }
      }
    }
  }

  private static Optional<String> value(List<String> lines, String name) {
    return lines.stream()
        .filter(line -> line.startsWith(name))
        .map(line -> line.substring(line.indexOf(':') + 1).strip())
        .findFirst();
  }
}
