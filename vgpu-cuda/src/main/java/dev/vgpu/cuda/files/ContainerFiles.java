package dev.vgpu.cuda.files;

import dev.vgpu.ContainerSpec;
import dev.vgpu.ContainerSpec.Access;
import dev.vgpu.ContainerSpec.Mount;
import dev.vgpu.VgpuException;
import dev.vgpu.cuda.layout.HookEnvironment;
import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.pages.ExpressFiles;
import dev.vgpu.cuda.pages.LeasePages;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The host files that a container needs. Each has the same path in the container, so the variables
 * stay the same. Of the run directory, a container sees only its own lease and, if that lease is
 * offline, the GPU's express lane. It sees nothing of other tenants and can write only its own
 * report.
 */
public final class ContainerFiles {
  private static final String PRELOAD = "LD_PRELOAD";

  private final Map<String, String> environment;
  private final DeviceNodes nodes;
  private final Map<Path, Mount> mounts = new LinkedHashMap<>();

  /** Takes the environment that a lease gives its programs. */
  public ContainerFiles(Map<String, String> environment, DeviceNodes nodes) {
    this.environment = environment;
    this.nodes = nodes;
  }

  /**
   * {@return the specification}
   *
   * @throws VgpuException if the environment is not that of a lease on this machine
   */
  public ContainerSpec spec() {
    List<Path> libraries = preloads();
    libraries.forEach(file -> add(file, Access.READ_ONLY));
    addLease(Path.of(named(HookEnvironment.VGPU_RUN_DIR)));
    addDriver(HookEnvironment.VGPU_CUDA_DRIVER);
    addDriver(HookEnvironment.VGPU_NVML);
    addEmulator();
    List<Path> devices =
        nodes.of(
            environment.getOrDefault("CUDA_VISIBLE_DEVICES", ""),
            environment.getOrDefault(HookEnvironment.VGPU_MIG, ""));
    if (!devices.isEmpty()) {
      addSiblings();
      libraries.stream().findFirst().ifPresent(this::addAsDriver);
    }
    ContainerSpec.Builder spec = ContainerSpec.builder();
    environment.forEach(spec::variable);
    spec.variable(PRELOAD, String.join(":", libraries.stream().map(Path::toString).toList()));
    mounts.values().forEach(spec::mount);
    devices.forEach(spec::device);
    return spec.build();
  }

  private String named(String variable) {
    String value = environment.get(variable);
    if (value == null || value.isEmpty()) {
      throw new VgpuException("the environment names no lease: " + variable + " is not set");
    }
    return value;
  }

  /** Leaves out the host program's own preloads. */
  private List<Path> preloads() {
    List<Path> libraries = new ArrayList<>();
    for (String library : named(PRELOAD).split(":", -1)) {
      if (library.startsWith("/")) {
        libraries.add(Path.of(library));
      }
    }
    return libraries;
  }

  /** Mounts the directory, because the next seat replaces the socket in it. */
  private void addLease(Path runDirectory) {
    Path lease = runDirectory.resolve("leases").resolve(named(HookEnvironment.VGPU_LEASE));
    add(lease, Access.READ_ONLY);
    add(lease.resolve(LeasePages.REPORT), Access.READ_WRITE);
    try {
      ByteBuffer grant = grant(lease.resolve(LeasePages.GRANT));
      String page = ExpressFiles.pageName(grant);
      Path file = runDirectory.resolve("express").resolve(page);
      // A program that can write the page can truncate it, and so crash every process that maps it.
      // For the programs of urgent leases, the seat writes the page.
      boolean obeys =
          grant.getInt(ShmLayout.GRANT_OFFSET + ShmLayout.Grant.PREEMPTION_CLASS)
              == ShmLayout.CLASS_OFFLINE;
      if (obeys && !page.isEmpty() && Files.exists(file)) {
        add(file, Access.READ_ONLY);
      }
    } catch (IOException e) {
      throw new VgpuException(
          "cannot read the grant of a lease: " + e.getMessage() + " directory=" + lease, e);
    }
  }

  private static ByteBuffer grant(Path file) throws IOException {
    ByteBuffer page = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
    if (page.capacity() != ShmLayout.GRANT_SIZE) {
      throw new IOException("the page was truncated: " + file);
    }
    return page;
  }

  private void addDriver(String variable) {
    String library = environment.get(variable);
    if (library != null && library.startsWith("/")) {
      add(Path.of(library), Access.READ_ONLY);
    }
  }

  private void addEmulator() {
    String state = environment.get(HookEnvironment.VGPU_EMULATOR_DIR);
    if (state != null && state.startsWith("/")) {
      Path directory = Path.of(state);
      makeDirectory(directory);
      add(directory, Access.READ_WRITE);
    }
    String settings = environment.get(HookEnvironment.VGPU_EMULATOR);
    if (settings != null && settings.startsWith("@/")) {
      add(Path.of(settings.substring(1)), Access.READ_ONLY);
    }
  }

  private static void makeDirectory(Path directory) {
    try {
      Files.createDirectories(directory);
    } catch (IOException e) {
      throw new VgpuException(
          "cannot make a directory that containers share: " + e.getMessage(), e);
    }
  }

  /** Libraries that the machine's own driver loads itself, for example the PTX compiler. */
  private void addSiblings() {
    String library = environment.get(HookEnvironment.VGPU_CUDA_DRIVER);
    Path directory = library == null ? null : Path.of(library).getParent();
    if (directory == null) {
      return;
    }
    try (DirectoryStream<Path> files =
        Files.newDirectoryStream(directory, "lib{cuda,nvidia-}*.so*")) {
      files.forEach(file -> add(file, Access.READ_ONLY));
    } catch (IOException e) {
      throw new VgpuException("cannot list the driver's libraries: " + e.getMessage(), e);
    }
  }

  /**
   * Mounts the hook as {@code libcuda.so} too. Many programs open that name first, some in a way
   * that {@code LD_PRELOAD} does not reach. The C library loads one file only once.
   */
  private void addAsDriver(Path hook) {
    Path driver = Path.of(named(HookEnvironment.VGPU_CUDA_DRIVER));
    Path unversioned = driver.resolveSibling("libcuda.so");
    if (driver.isAbsolute() && !unversioned.equals(driver)) {
      add(hook, unversioned, Access.READ_ONLY);
    }
  }

  /** Mounts the target of a link under the link's name. */
  private void add(Path path, Access access) {
    add(path, path, access);
  }

  private void add(Path path, Path inContainer, Access access) {
    try {
      mounts.put(inContainer, new Mount(path.toRealPath(), inContainer, access));
    } catch (IOException e) {
      throw new VgpuException("a file that a container needs is not there: " + path, e);
    }
  }
}
