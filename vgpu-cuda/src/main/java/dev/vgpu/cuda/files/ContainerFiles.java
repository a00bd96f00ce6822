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
 * What a container needs of this machine's files. All have the same path in the container, so that
 * the variables are the same too. Of the run directory a container sees its own lease, and if that
 * is offline the GPU's express lane; nothing of other tenants. It can write its own report alone.
 */
public final class ContainerFiles {
  private static final String PRELOAD = "LD_PRELOAD";

  private final Map<String, String> environment;
  private final DeviceNodes nodes;
  private final Map<Path, Mount> mounts = new LinkedHashMap<>();

  /** For a program with this environment, which a lease gave. */
  public ContainerFiles(Map<String, String> environment, DeviceNodes nodes) {
    this.environment = environment;
    this.nodes = nodes;
  }

  /**
   * {@return the specification}
   *
   * @throws VgpuException if the environment is none of a lease here
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

  /** Without what programs of the host have there themselves. */
  private List<Path> preloads() {
    List<Path> libraries = new ArrayList<>();
    for (String library : named(PRELOAD).split(":", -1)) {
      if (library.startsWith("/")) {
        libraries.add(Path.of(library));
      }
    }
    return libraries;
  }

  /** The directory, for a socket in it that the next holder of the seat replaces. */
  private void addLease(Path runDirectory) {
    Path lease = runDirectory.resolve("leases").resolve(named(HookEnvironment.VGPU_LEASE));
    add(lease, Access.READ_ONLY);
    add(lease.resolve(LeasePages.REPORT), Access.READ_WRITE);
    try {
      ByteBuffer grant = grant(lease.resolve(LeasePages.GRANT));
      String page = ExpressFiles.pageName(grant);
      Path file = runDirectory.resolve("express").resolve(page);
      // Whoever can write it can cut it short, and so end what maps it: for the programs of urgent
      // leases the seat writes it.
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
      throw new IOException("the page was cut short: " + file);
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

  /** What the machine's own driver loads by itself, the compiler of PTX for one. */
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
   * The name {@code libcuda.so}, which many programs ask for first, is the hook also for who asks
   * in a way that {@code LD_PRELOAD} does not reach: the C library takes one file for one library.
   */
  private void addAsDriver(Path hook) {
    Path driver = Path.of(named(HookEnvironment.VGPU_CUDA_DRIVER));
    Path unversioned = driver.resolveSibling("libcuda.so");
    if (driver.isAbsolute() && !unversioned.equals(driver)) {
      add(hook, unversioned, Access.READ_ONLY);
    }
  }

  /** Where there is a link, what it leads to is mounted under the link's name. */
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
