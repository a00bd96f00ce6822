package dev.vgpu.cuda.files;

import dev.vgpu.VgpuException;
import dev.vgpu.cuda.layout.HookEnvironment;
import dev.vgpu.files.FileAccess;
import dev.vgpu.files.LibraryPlace;
import dev.vgpu.files.NativeResource;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.files.UnpackedFile;
import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A native file of this jar: the hook, the NVML stand-in, or the checkpoint program. For the hook,
 * {@code VGPU_HOOK} may name another file. The file is unpacked once, to the run directory or where
 * {@link LibraryPlace} says. Its checksum is part of the path, so several versions can coexist.
 */
public final class HookLibrary {
  static final String NAME = "libvgpu_cuda.so";
  static final String NVML_NAME = "libvgpu_nvml.so";
  static final String DRIVER_NAME = "libcuda.so";
  static final String CHECKPOINT_NAME = "vgpu-checkpoint";

  private final String name;
  private final String resource;
  private final @Nullable String named;
  private final Map<String, String> environment;

  /** The hook: the file that the environment names, else the one in this jar. */
  public HookLibrary(Map<String, String> environment) {
    this(NativeResource.of(NAME), environment);
  }

  /** Takes another resource of the class path instead of the hook in this jar. */
  public HookLibrary(String resource, Map<String, String> environment) {
    this(NAME, resource, environment.get(HookEnvironment.VGPU_HOOK), environment);
  }

  private HookLibrary(
      String name, String resource, @Nullable String named, Map<String, String> environment) {
    this.name = name;
    this.resource = resource;
    this.named = named;
    this.environment = Map.copyOf(environment);
  }

  /** {@return the NVML stand-in} */
  static HookLibrary nvml(Map<String, String> environment) {
    return new HookLibrary(NVML_NAME, NativeResource.of(NVML_NAME), null, environment);
  }

  /** {@return the program that suspends other processes} */
  public static HookLibrary checkpointProgram(Map<String, String> environment) {
    return new HookLibrary(CHECKPOINT_NAME, NativeResource.of(CHECKPOINT_NAME), null, environment);
  }

  /** {@return why the library is not available; empty if it is} */
  public Optional<String> missing() {
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
   * @param runDirectory unpacked here if it is not there yet
   * @throws VgpuException if the library is not available, or cannot be unpacked
   */
  public Path in(Path runDirectory) {
    Optional<String> missing = missing();
    if (missing.isPresent()) {
      throw new VgpuException(missing.get());
    }
    Path file = named != null ? named(Path.of(named)) : unpacked(runDirectory);
    String path = file.toString();
    if (path.indexOf(' ') >= 0 || path.indexOf(':') >= 0) {
      throw new VgpuException(
          "the hook's path holds a space or a colon, which LD_PRELOAD cannot: path=" + path);
    }
    return file;
  }

  private static Path named(Path file) {
    try {
      Path ignored = TrustedFiles.check(file);
      return file.toAbsolutePath();
    } catch (IOException e) {
      throw new VgpuException(
          HookEnvironment.VGPU_HOOK + " names a file that cannot be used: " + e.getMessage(), e);
    }
  }

  private Path unpacked(Path runDirectory) {
    Path place = LibraryPlace.ofThisProcess(environment).in(runDirectory.resolve("lib"));
    try {
      Path file = new UnpackedFile(HookLibrary.class, resource, name).in(place);
      if (name.equals(NAME)) {
        nameAsDriver(file);
      }
      FileAccess access = FileAccess.of(runDirectory); // a group that may enter it loads it too
      access.applyToDirectory(place);
      access.applyToDirectory(Objects.requireNonNull(file.getParent()));
      return file;
    } catch (IOException e) {
      throw new VgpuException(
          "cannot unpack the hook: " + e.getMessage() + " directory=" + place, e);
    }
  }

  /**
   * Links {@code libcuda.so}, which many programs open first, to the hook. In a process that loads
   * the hook without preloading it, this link is how the C library learns that name.
   */
  private static void nameAsDriver(Path hook) throws IOException {
    Path link = hook.resolveSibling(DRIVER_NAME);
    if (!Files.isSymbolicLink(link)) {
      try {
        Files.createSymbolicLink(link, Objects.requireNonNull(hook.getFileName()));
      } catch (FileSystemException e) {
        // Another process was first. Or the place is read-only: the hook is then found only as
        // libcuda.so.1.
      }
    }
  }
}
