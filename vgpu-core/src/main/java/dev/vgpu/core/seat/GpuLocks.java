package dev.vgpu.core.seat;

import dev.vgpu.VgpuException;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.discovery.HostGpu;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.SeatLock;
import dev.vgpu.files.RunPlace;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.files.UntrustedFileException;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ensures that two seats in different run directories never manage the same GPU. Each seat holds
 * one lock per GPU, in a directory that all processes of a user know. Every user can read who holds
 * the locks in the machine's directory, so no other seat manages a GPU that root's seat manages.
 * Used by one thread at a time, the one that joins.
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

  private static final Path OF_THE_MACHINE = Path.of("/run/vgpu-gpus");

  private final Path place;
  private final Path ofTheMachine;
  private final List<Taken> taken = new ArrayList<>();

  private record Taken(Path file, SeatLock lock) {}

  /** Creates an instance that holds no lock. */
  public GpuLocks(Map<String, String> environment, RunPlace.Origin origin) {
    this(environment, origin, OF_THE_MACHINE);
  }

  /** The same for another directory of the machine. */
  GpuLocks(Map<String, String> environment, RunPlace.Origin origin, Path ofTheMachine) {
    String session = environment.getOrDefault("XDG_RUNTIME_DIR", "");
    boolean isOfTheMachine = session.isBlank() || origin == RunPlace.Origin.MACHINE;
    this.ofTheMachine = ofTheMachine;
    this.place = isOfTheMachine ? ofTheMachine : Path.of(session).resolve("vgpu-gpus");
  }

  /**
   * Takes the locks of all GPUs that have a driver. This machine's CPU needs none: several seats
   * may share it.
   */
  void take(List<PhysicalGpu> gpus, Discovery discovery, Path runDirectory, ProcessIdentity self) {
    for (PhysicalGpu gpu : gpus) {
      if (!gpu.provider().equals(HostGpu.PROVIDER)) {
        take(gpu, discovery.scope(gpu.id()), runDirectory, self);
      }
    }
  }

  private void take(PhysicalGpu gpu, String scope, Path runDirectory, ProcessIdentity self) {
    String name = fileName(gpu.id().value());
    String file =
        scope.isEmpty()
            ? name + ".lock"
            : name + "-" + HexFormat.of().toHexDigits(scope.hashCode()) + ".lock";
    checkMachine(gpu, file, runDirectory, self);
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
    taken.add(new Taken(place.resolve(file), outcome.lock()));
  }

  /** Refuses a GPU of root's seat. Root's lock itself is not touched: a lock could block root. */
  private void checkMachine(PhysicalGpu gpu, String file, Path runDirectory, ProcessIdentity self) {
    if (place.equals(ofTheMachine)) {
      return;
    }
    Optional<ProcessIdentity> holder = SeatLock.holder(ofTheMachine.resolve(file));
    if (holder.filter(ProcessIdentity::isAlive).filter(other -> !other.equals(self)).isPresent()) {
      close();
      throw new GpuTakenException(
          "the machine's seat manages this GPU: gpu="
              + gpu.id()
              + " "
              + holder.get()
              + " ours="
              + runDirectory
              + "; become a member of the seat's group (usermod -aG vgpu USER, as root), and log in"
              + " again");
    }
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
    String permissions = place.equals(ofTheMachine) ? "rwxr-xr-x" : "rwx------";
    try {
      Files.createDirectory(
          place,
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(permissions)));
    } catch (FileAlreadyExistsException e) {
      log.trace("it is there", e);
    }
    TrustedFiles.checkPrivate(place);
  }

  /** Releases the locks. A second call does nothing. */
  @Override
  public void close() {
    for (Taken each : taken) {
      try {
        Files.deleteIfExists(SeatLock.holderFile(each.file)); // while this process has the lock
      } catch (IOException e) {
        log.debug("the holder of a GPU's lock cannot be removed", e);
      }
      each.lock.close();
    }
    taken.clear();
  }
}
