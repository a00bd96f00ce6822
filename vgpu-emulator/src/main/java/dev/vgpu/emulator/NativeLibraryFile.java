package dev.vgpu.emulator;

import dev.vgpu.VgpuException;
import dev.vgpu.files.FileAccess;
import dev.vgpu.files.NativeResource;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.files.UnpackedFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** A native library in this jar, unpacked on first use. Safe for use by several threads. */
final class NativeLibraryFile {
  private final UnpackedFile file;
  private final EmulatorSettings settings;
  private final Path directory;
  private @Nullable Path unpacked;

  NativeLibraryFile(String name, EmulatorSettings settings, Path directory) {
    this.file = new UnpackedFile(NativeLibraryFile.class, NativeResource.of(name), name);
    this.settings = settings;
    this.directory = directory;
  }

  /**
   * {@return the unpacked file}
   *
   * @throws VgpuException if the file cannot be written, if another user could change it or the
   *     state of the emulated GPUs, or if the jar is damaged
   */
  synchronized Path path() {
    Path found = unpacked;
    if (found == null || !Files.isRegularFile(found)) {
      found = unpack();
      unpacked = found;
    }
    return found;
  }

  private Path unpack() {
    if (NativeLibraryFile.class.getResource(file.resource()) == null) {
      throw new VgpuException(
          "the jar holds no emulated GPU for this machine: file=" + file.resource());
    }
    // The library refuses it as well; checking here gives the reason before anything is loaded.
    Optional<String> objection = TrustedFiles.objection(settings.stateDirectory());
    if (objection.isPresent()) {
      throw new VgpuException(
          "the directory of the emulated GPUs cannot be used: "
              + objection.get()
              + " directory="
              + settings.stateDirectory()
              + " (it is set by $VGPU_EMULATOR_DIR, $VGPU_RUN_DIR, $XDG_RUNTIME_DIR)");
    }
    try {
      Path library = file.in(directory);
      if (FileAccess.isForGroup(settings.stateDirectory())) {
        FileAccess access = FileAccess.of(settings.stateDirectory());
        access.applyToDirectory(directory);
        access.applyToDirectory(Objects.requireNonNull(library.getParent()));
      }
      return library;
    } catch (IOException e) {
      throw new VgpuException(
          "cannot unpack a native library (no permission, or no space?): name="
              + file.name()
              + " directory="
              + directory
              + " reason="
              + e,
          e);
    }
  }
}
