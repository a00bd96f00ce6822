package dev.vgpu.core.seat;

import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.discovery.HostGpu;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.SeatLock;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.files.UntrustedFileException;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ensures that two seats in different run directories never manage the same GPU. Each seat holds
 * one lock per GPU, in a directory that all processes of a user know. Used by one thread at a time,
 * the one that joins.
 */
public final class GpuLocks implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(GpuLocks.class);

  /** A GPU is managed from another run directory. The pool must not fall back to this JVM alone. */
  public static final class GpuTakenException extends VgpuException {
    private static final long serialVersionUID = 1L;

    GpuTakenException(String message) {
      super(message);
    }
  }

  private final Path place;
  private final List<SeatLock> locks = new ArrayList<>();

  /** Creates an instance that holds no lock. The environment determines the directory. */
  public GpuLocks(Map<String, String> environment) {
    String session = environment.getOrDefault("XDG_RUNTIME_DIR", "");
    this.place = Path.of(session.isEmpty() ? "/run" : session).resolve("vgpu-gpus");
  }

  /**
   * Takes the locks of all GPUs that have a driver. This machine's CPU needs none: several seats
   * may share it.
   */
  void take(List<PhysicalGpu> gpus, Discovery discovery, Path runDirectory, ProcessIdentity self) {
    for (PhysicalGpu gpu : gpus) {
      if (!gpu.provider().equals(HostGpu.PROVIDER)) {
        take(gpu, discovery.environment(List.of(gpu.id())), runDirectory, self);
      }
    }
  }

  private void take(
      PhysicalGpu gpu, Map<String, String> variables, Path runDirectory, ProcessIdentity self) {
    // Emulated GPUs of two emulator directories are different GPUs.
    String emulated = variables.getOrDefault("VGPU_EMULATOR_DIR", "");
    String name = fileName(gpu.id().value());
    String file =
        emulated.isEmpty()
            ? name + ".lock"
            : name + "-" + HexFormat.of().toHexDigits(emulated.hashCode()) + ".lock";
    SeatLock.Outcome outcome;
    try {
      make();
      outcome = SeatLock.tryTake(place.resolve(file), self);
    } catch (IOException e) {
      log.debug("cannot determine whether another run directory manages the GPU", e);
      if (e instanceof UntrustedFileException) {
        log.warn("not checking whether another run directory manages the GPU: {}", e.getMessage());
      }
      return;
    }
    if (outcome.lock() == null) {
      close();
      throw new GpuTakenException(
          "another process manages this GPU, from another run directory: gpu="
              + gpu.id()
              + " "
              + outcome.holder().map(ProcessIdentity::toString).orElse("pid=?")
              + " ours="
              + runDirectory
              + "; open the pool with that process's run directory, or stop it");
    }
    locks.add(outcome.lock());
  }

  /** The id with all characters replaced that are unsafe in a file name. */
  static String fileName(String id) {
    char[] name = id.toCharArray();
    for (int i = 0; i < name.length; i++) {
      char c = name[i];
      boolean isPlain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
      if (!isPlain && c != '.' && c != '_' && c != '-') {
        name[i] = '_';
      }
    }
    return new String(name);
  }

  private void make() throws IOException {
    Path ignored = TrustedFiles.check(place);
    try {
      Files.createDirectory(
          place,
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (FileAlreadyExistsException e) {
      log.trace("it is there", e);
    }
    TrustedFiles.checkPrivate(place);
  }

  /** Releases the locks. A second call does nothing. */
  @Override
  public void close() {
    locks.forEach(SeatLock::close);
    locks.clear();
  }
}
