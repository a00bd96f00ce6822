package dev.vgpu.cuda.attach;

import dev.vgpu.VgpuException;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.ForwardingLease;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/** The seat's side of green contexts. Safe for use by several threads. */
public final class GreenEnforcement implements Enforcement {
  /** The variable that holds a lease's part of the GPU's processors, in percent. */
  static final String PERCENT = "VGPU_GREEN_PERCENT";

  /**
   * The variable that names the lock file. Only the process that holds the lock may have green
   * contexts on the GPU.
   */
  static final String LOCK = "VGPU_GREEN_LOCK";

  private final Path directory;
  private final Enforcement beneath;

  /**
   * Creates the directory of the lock files.
   *
   * @throws IOException if the directory cannot be created
   */
  public GreenEnforcement(Path runDirectory, Enforcement beneath) throws IOException {
    this.directory =
        Files.createDirectories(
            runDirectory.resolve("green"),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    this.beneath = beneath;
  }

  @Override
  public EnforcedLease prepare(
      String id,
      Path leaseDirectory,
      PhysicalGpu gpu,
      VirtualGpuRequest request,
      EnforcedLease.Listener listener) {
    Path lock = directory.resolve(gpu.id().value().toLowerCase(Locale.ROOT));
    try {
      if (!Files.exists(lock)) {
        Files.createFile(lock);
      }
    } catch (FileAlreadyExistsException e) {
      // Another lease of this GPU was prepared at the same time.
    } catch (IOException e) {
      throw new VgpuException("a lock for green contexts cannot be made: path=" + lock, e);
    }
    return new Lease(beneath.prepare(id, leaseDirectory, gpu, request, listener), request, lock);
  }

  /** Closes nothing: the owner of {@code beneath} closes it. */
  @Override
  public void close() {}

  /** A lease for one JVM. A program under it would get the whole GPU. */
  private static final class Lease extends ForwardingLease {
    private final VirtualGpuRequest request;
    private final Path lock;

    Lease(EnforcedLease beneath, VirtualGpuRequest request, Path lock) {
      super(beneath);
      this.request = request;
      this.lock = lock;
    }

    @Override
    public Map<String, String> environment() {
      Map<String, String> variables = new LinkedHashMap<>(super.environment());
      variables.put(PERCENT, Integer.toString(request.computePercent().orElse(0)));
      variables.put(LOCK, lock.toString());
      return Map.copyOf(variables);
    }

    /** Refuses another policy or compute percent. The quota changes at once. */
    @Override
    public boolean tryResize(VirtualGpuRequest other, int entitledPermille) {
      return other.policy() == request.policy()
          && other.computePercent().equals(request.computePercent())
          && super.tryResize(other, entitledPermille);
    }

    @Override
    public void check(Path executable) {
      throw new VgpuException(
          "green contexts are for calls in one JVM; a program would have the whole GPU: demand a"
              + " backend for processes (Capabilities.Scope.PROCESS)");
    }
  }
}
