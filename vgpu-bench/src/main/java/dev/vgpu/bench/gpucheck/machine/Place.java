package dev.vgpu.bench.gpucheck.machine;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.request.MemorySize;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * The paths of a check, in an unpacked bundle ({@code VGPU_BUNDLE}) or in a checkout ({@code
 * VGPU_HOME}). Immutable.
 *
 * @param home the bundle or the checkout
 * @param isBundle which of the two it is
 * @param work this run's working directory
 */
public record Place(Path home, boolean isBundle, Path work) {
  /** The file, in the working directory, with the findings of the first look at the GPU. */
  public static final String ABOUT = "about.json";

  /** The key, in that file, of whether another driver stands in for the GPU's. */
  public static final String STAND_IN = "stand_in";

  /** The system property with the class path of {@code vgpu}; a bundle has one for everything. */
  public static final String COMMAND_CLASS_PATH = "vgpu.command.classpath";

  private static final List<String> SCRIPTS = List.of("torch_pair.py", "clients.py");

  /** {@return the place of a bundle, or of a checkout, as the environment says} */
  public static Place of(Path work) {
    String bundle = System.getenv("VGPU_BUNDLE");
    String home = Objects.requireNonNullElse(System.getenv("VGPU_HOME"), ".");
    return new Place(
        Path.of(bundle == null ? home : bundle).toAbsolutePath().normalize(), bundle != null, work);
  }

  /** {@return the path of a sample program, of {@code spin.py}, or of one of our scripts} */
  public Path sample(String name) {
    if (isBundle) {
      return home.resolve("programs").resolve(name);
    }
    if (SCRIPTS.contains(name)) {
      return home.resolve("vgpu-bench/src/main/python").resolve(name);
    }
    return home.resolve("samples/cuda-programs/target/programs").resolve(name);
  }

  /**
   * {@return the command of a sample program that takes memory in pieces of 64 MiB until it has the
   * limit, and tells how much it got}
   */
  public List<String> hoard(long limitBytes, String... more) {
    List<String> command =
        new ArrayList<>(
            List.of(
                sample("hoard").toString(),
                "--chunk",
                "64MiB",
                "--limit",
                Long.toString(limitBytes),
                "--json"));
    command.addAll(List.of(more));
    return command;
  }

  /** {@return the built C program; empty if it must be built first} */
  public Optional<Path> program() {
    Path bundled = home.resolve("programs/gpu_program");
    return Optional.ofNullable(System.getenv("VGPU_BENCH_PROGRAM"))
        .map(Path::of)
        .or(() -> isBundle ? Optional.of(bundled) : Optional.empty())
        .filter(Files::isExecutable);
  }

  /** {@return the findings of the first look at the GPU} */
  public JsonNode about() {
    return Outcome.read(work.resolve(ABOUT));
  }

  /**
   * {@return whether another driver stands in for the GPU's; NVIDIA's runtimes are skipped then}
   */
  public boolean isOverStandIn() {
    return about().path(STAND_IN).asBoolean();
  }

  /** {@return a quota of a size, or of a part of the GPU's memory if that is less} */
  public MemorySize quota(long gibibytes, int mostPercent) {
    long most = about().path("memory_bytes").asLong() / 100 * mostPercent;
    long wanted = gibibytes << 30;
    return MemorySize.ofBytes(Math.min(wanted, most) >> 21 << 21);
  }

  /** {@return the Java launcher that runs this process} */
  static String java() {
    return Path.of(System.getProperty("java.home", ""), "bin", "java").toString();
  }

  /** {@return the beginning of a {@code vgpu} command} */
  public static List<String> vgpu() {
    String own = System.getProperty("java.class.path", "");
    return List.of(
        java(),
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        Objects.requireNonNullElse(System.getProperty(COMMAND_CLASS_PATH), own),
        "dev.vgpu.cli.VgpuCommand");
  }

  /** {@return the beginning of a {@code bench} command; a step's begins with "gpu-check --step"} */
  public static List<String> bench() {
    String own = System.getProperty("java.class.path", "");
    String command = Objects.requireNonNullElse(System.getProperty(COMMAND_CLASS_PATH), own);
    return List.of(
        java(),
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-D" + COMMAND_CLASS_PATH + "=" + command,
        "-cp",
        own,
        "dev.vgpu.bench.Bench");
  }

  /** {@return the first installed program with one of these names; empty if there is none} */
  public static Optional<Path> onPath(String... names) {
    String path = Objects.requireNonNullElse(System.getenv("PATH"), "/usr/bin:/bin");
    for (String name : names) {
      for (String directory : path.split(File.pathSeparator, -1)) {
        Path file = Path.of(directory.isEmpty() ? "." : directory, name);
        if (Files.isExecutable(file) && !Files.isDirectory(file)) {
          return Optional.of(file);
        }
      }
    }
    return Optional.empty();
  }
}
