package dev.vgpu.cuda;

import dev.vgpu.VgpuException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A library that is preloaded: the hook itself, or what stands in for NVML. It is in this jar, or
 * is, of the hook, the one that {@code VGPU_HOOK} names. It is unpacked once to a run directory, or
 * where {@link LibraryPlace} says, under its checksum, so that several versions can lie side by
 * side.
 */
final class HookLibrary {
  static final String NAME = "libvgpu_cuda.so";
  static final String NVML_NAME = "libvgpu_nvml.so";
  static final String CHECKPOINT_NAME = "vgpu-checkpoint";

  private final String name;
  private final String resource;
  private final @Nullable String named;
  private final Map<String, String> environment;

  HookLibrary(Map<String, String> environment) {
    this(resource(NAME), environment);
  }

  HookLibrary(String resource, Map<String, String> environment) {
    this(NAME, resource, environment.get(HookEnvironment.VGPU_HOOK), environment);
  }

  private HookLibrary(
      String name, String resource, @Nullable String named, Map<String, String> environment) {
    this.name = name;
    this.resource = resource;
    this.named = named;
    this.environment = Map.copyOf(environment);
  }

  /** {@return what stands in for NVML} */
  static HookLibrary nvml(Map<String, String> environment) {
    return new HookLibrary(NVML_NAME, resource(NVML_NAME), null, environment);
  }

  /** {@return the program that suspends other processes} */
  static HookLibrary checkpointProgram(Map<String, String> environment) {
    return new HookLibrary(CHECKPOINT_NAME, resource(CHECKPOINT_NAME), null, environment);
  }

  private static String resource(String name) {
    return "/META-INF/native/linux-" + architecture() + "/" + name;
  }

  private static String architecture() {
    String name = System.getProperty("os.arch", "");
    return name.equals("amd64") ? "x86_64" : name;
  }

  /** {@return why there is none; empty if there is one} */
  Optional<String> missing() {
    if (named != null) {
      return Files.isReadable(Path.of(named))
          ? Optional.empty()
          : Optional.of(HookEnvironment.VGPU_HOOK + " names no readable file: " + named);
    }
    if (HookLibrary.class.getResource(resource) == null) {
      return Optional.of(
          "the jar holds no hook for this machine (" + resource + "); see VGPU_HOOK");
    }
    return Optional.empty();
  }

  /**
   * {@return the library as a file}
   *
   * @param runDirectory where it is unpacked to, if it is not there yet
   * @throws VgpuException if there is none, or it cannot be unpacked
   */
  Path in(Path runDirectory) {
    Optional<String> missing = missing();
    if (missing.isPresent()) {
      throw new VgpuException(missing.get());
    }
    Path file = named != null ? Path.of(named).toAbsolutePath() : unpacked(runDirectory);
    String path = file.toString();
    if (path.indexOf(' ') >= 0 || path.indexOf(':') >= 0) {
      throw new VgpuException(
          "the hook's path holds a space or a colon, which LD_PRELOAD cannot: path=" + path);
    }
    return file;
  }

  private Path unpacked(Path runDirectory) {
    Path place = LibraryPlace.ofThisProcess(environment).in(runDirectory);
    try {
      String sum = expectedSum();
      Path directory = place.resolve(sum);
      Path file = directory.resolve(name);
      byte[] bytes = read(resource);
      // It appears there whole or not at all, so its length is enough; its sum would take longer to
      // compute in a fresh JVM than all the rest of an acquisition.
      if (!Files.exists(file) || Files.size(file) != bytes.length) {
        String found = checksum(bytes);
        if (!sum.equals(found)) {
          throw new VgpuException(
              "the hook in the jar is damaged: sha256=" + found + " expected=" + sum);
        }
        Files.createDirectories(directory);
        writeWhole(name, file, bytes);
      }
      return file.toAbsolutePath();
    } catch (IOException e) {
      throw new VgpuException(
          "cannot unpack the hook: " + e.getMessage() + " directory=" + place, e);
    }
  }

  /** At no moment is there a part of it under its name. */
  private static void writeWhole(String name, Path file, byte[] bytes) throws IOException {
    Path part = Files.createTempFile(file.getParent(), name, ".part");
    try {
      Files.write(part, bytes);
      Files.setPosixFilePermissions(part, PosixFilePermissions.fromString("r-xr-xr-x"));
      Files.move(part, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } finally {
      Files.deleteIfExists(part);
    }
  }

  private static byte[] read(String name) throws IOException {
    try (InputStream in = HookLibrary.class.getResourceAsStream(name)) {
      if (in == null) {
        throw new IOException("no such resource: " + name);
      }
      return in.readAllBytes();
    }
  }

  /** The checksum that the build wrote beside it. */
  private String expectedSum() throws IOException {
    return new String(read(resource + ".sha256"), StandardCharsets.US_ASCII).strip();
  }

  private static String checksum(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java has SHA-256", e);
    }
  }
}
