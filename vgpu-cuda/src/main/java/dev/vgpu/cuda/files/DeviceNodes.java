package dev.vgpu.cuda.files;

import dev.vgpu.VgpuException;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The device nodes of NVIDIA's driver: the common ones, those of given GPUs, and those of a MIG
 * instance. GPUs are found by UUID in the driver's files below {@code /proc}. Immutable.
 */
public final class DeviceNodes {
  private static final List<String> COMMON = List.of("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools");

  /** Configuring and monitoring MIG are for administrators. */
  private static final List<String> NOT_FOR_TENANTS = List.of("nvidia-cap1", "nvidia-cap2");

  /** GPU, GPU instance, compute instance. */
  private static final Pattern PLACE = Pattern.compile("([^/]+)/(\\d{1,4})/(\\d{1,4})");

  private static final String CAPABILITIES = "nvidia-caps";

  private final Path dev;
  private final Path driver;

  /**
   * Uses other directories.
   *
   * @param dev for {@code /dev}
   * @param driver for {@code /proc/driver/nvidia}
   */
  DeviceNodes(Path dev, Path driver) {
    this.dev = dev;
    this.driver = driver;
  }

  /** {@return the nodes in {@code /dev}} */
  public static DeviceNodes ofThisMachine() {
    return new DeviceNodes(Path.of("/dev"), Path.of("/proc/driver/nvidia"));
  }

  /**
   * {@return the nodes that a process needs to use some GPUs; none if the driver is absent} For a
   * MIG device, the nodes of its instances. If {@code places} does not name these, the nodes of all
   * GPUs and instances.
   *
   * @param visible as in {@code CUDA_VISIBLE_DEVICES}
   * @param places as in {@code VGPU_MIG}; empty: unknown, or no device is a MIG device
   * @throws VgpuException if a node is missing
   */
  List<Path> of(String visible, String places) {
    List<Path> nodes = new ArrayList<>();
    if (!Files.exists(dev.resolve("nvidiactl"))) {
      return nodes;
    }
    try {
      COMMON.stream().map(dev::resolve).filter(Files::exists).forEach(nodes::add);
      boolean isMig = visible.contains("MIG-");
      if (isMig && !places.isEmpty()) {
        for (String place : places.split(",", -1)) {
          addInstance(place, nodes);
        }
        return nodes;
      }
      addGpus(visible.toLowerCase(Locale.ROOT), isMig, nodes);
      Path capabilities = dev.resolve(CAPABILITIES);
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

  // ---- GPUs

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

  // ---- MIG instances

  /** Adds the GPU's node and the capability nodes of the GPU instance and the compute instance. */
  private void addInstance(String place, List<Path> nodes) throws IOException {
    Matcher matcher = PLACE.matcher(place);
    if (!matcher.matches()) {
      throw new VgpuException("not the place of a MIG instance: " + place);
    }
    List<Path> gpu = new ArrayList<>();
    addGpus(matcher.group(1).toLowerCase(Locale.ROOT), false, gpu);
    if (gpu.size() != 1) {
      throw new VgpuException("NVIDIA's driver does not list the GPU of a MIG instance: " + place);
    }
    if (!nodes.contains(gpu.get(0))) {
      nodes.add(gpu.get(0));
    }
    String number = String.valueOf(gpu.get(0).getFileName()).substring("nvidia".length());
    String instance = "gi" + matcher.group(2);
    for (String access : List.of(instance, instance + "/ci" + matcher.group(3))) {
      Path node = capability(number, access + "/access");
      if (!nodes.contains(node)) {
        nodes.add(node);
      }
    }
  }

  private Path capability(String gpu, String access) throws IOException {
    String minor = minor("gpu" + gpu + "/" + access, "gpu" + gpu + "/mig/" + access);
    Path node = dev.resolve(CAPABILITIES).resolve("nvidia-cap" + minor);
    if (!Files.exists(node)) {
      throw new VgpuException(
          "the device node of a MIG instance is not there: path="
              + node
              + "; nvidia-modprobe, or any CUDA program of root's, makes it");
    }
    return node;
  }

  /** Looks in the list of all capabilities, then in the capability's own file. */
  private String minor(String row, String file) throws IOException {
    for (String line : lines(driver.resolveSibling(CAPABILITIES).resolve("mig-minors"))) {
      if (line.startsWith(row + " ")) {
        return line.substring(row.length()).strip();
      }
    }
    return value(lines(driver.resolve("capabilities").resolve(file)), "DeviceFileMinor")
        .orElseThrow(
            () ->
                new VgpuException(
                    "NVIDIA's driver does not tell the device node of a MIG instance: " + row));
  }

  private static List<String> lines(Path file) throws IOException {
    try {
      return Files.readAllLines(file);
    } catch (NoSuchFileException e) {
      return List.of();
    }
  }
}
