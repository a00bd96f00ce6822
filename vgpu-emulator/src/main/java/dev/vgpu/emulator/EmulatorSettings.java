package dev.vgpu.emulator;

import dev.vgpu.VgpuException;
import dev.vgpu.files.LibraryPlace;
import dev.vgpu.request.MemorySize;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The emulator's settings in the environment. The native libraries read the same variables; this
 * class reads only what Java needs. Immutable.
 */
final class EmulatorSettings {
  private static final MemorySize DEFAULT_CONTEXT = MemorySize.ofMebibytes(64);

  private final Path stateDirectory;
  private final Optional<String> text;

  private EmulatorSettings(Path stateDirectory, Optional<String> text) {
    this.stateDirectory = stateDirectory;
    this.text = text;
  }

  static EmulatorSettings from(Map<String, String> environment) {
    return new EmulatorSettings(directory(environment), value(environment, "VGPU_EMULATOR"));
  }

  private static Optional<String> value(Map<String, String> environment, String name) {
    String value = environment.get(name);
    return value == null || value.isEmpty() ? Optional.empty() : Optional.of(value);
  }

  /** Uses the same order as state_file.c. */
  private static Path directory(Map<String, String> environment) {
    Optional<String> named = value(environment, "VGPU_EMULATOR_DIR");
    Optional<String> run = value(environment, "VGPU_RUN_DIR");
    Optional<String> user = value(environment, "XDG_RUNTIME_DIR");
    Path directory;
    if (named.isPresent()) {
      directory = Path.of(named.get());
    } else if (run.isPresent()) {
      directory = Path.of(run.get(), "emulator");
    } else if (user.isPresent()) {
      directory = Path.of(user.get(), "vgpu", "emulator");
    } else {
      directory = Path.of("/run/vgpu/emulator");
    }
    return directory.toAbsolutePath();
  }

  /** {@return the directory of the GPUs' shared state} */
  Path stateDirectory() {
    return stateDirectory;
  }

  /**
   * {@return the directory that the libraries are unpacked to: beside the state, or in the user's
   * cache if nothing can be executed beside the state}
   */
  Path libraryDirectory(LibraryPlace place) {
    return place.in(stateDirectory.resolveSibling("lib"));
  }

  /** {@return the value of {@code VGPU_EMULATOR}, if it is set} */
  Optional<String> text() {
    return text;
  }

  /**
   * {@return the GPU memory that one context takes}
   *
   * @throws VgpuException if the settings cannot be read
   */
  MemorySize contextMemory() {
    MemorySize context = DEFAULT_CONTEXT;
    for (String item : items()) {
      String[] parts = item.split("=", 2);
      if (parts.length == 2 && parts[0].trim().equals("context")) {
        try {
          context = MemorySize.fromString(parts[1].trim());
        } catch (IllegalArgumentException e) {
          throw new VgpuException("invalid emulator setting: context=" + parts[1].trim(), e);
        }
      }
    }
    return context;
  }

  private List<String> items() {
    if (text.isEmpty()) {
      return List.of();
    }
    String value = text.get();
    if (!value.startsWith("@")) {
      return Arrays.asList(value.split(",", -1));
    }
    Path file = Path.of(value.substring(1));
    try {
      return Files.readAllLines(file);
    } catch (IOException e) {
      throw new VgpuException("cannot read the emulator's settings: file=" + file, e);
    }
  }
}
