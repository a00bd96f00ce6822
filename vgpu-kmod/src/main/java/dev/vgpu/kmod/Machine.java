package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.Closeable;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** The kernel's interfaces that the backend uses on this machine. Immutable. */
class Machine {
  /** The required version of the module; the files of other versions may differ. */
  static final String VERSION = "0.1.0";

  /** The environment variable that has offline leases stopped. */
  static final String STOP_OFFLINE = "VGPU_KMOD_STOP_OFFLINE";

  private static final String DIRECTORY = "vgpu";

  private final Path root;

  /**
   * @param root the file system's root, or a directory that replaces it
   */
  Machine(Path root) {
    this.root = root;
  }

  private Path configfs() {
    return root.resolve("sys/kernel/config");
  }

  Path cgroups() {
    return root.resolve("sys/fs/cgroup");
  }

  Path tenantDirectory() {
    return configfs().resolve("vgpu");
  }

  Tenants tenants() {
    return new Tenants(tenantDirectory());
  }

  /** {@return the number by which the module identifies a cgroup} */
  String number(Path cgroup) throws IOException {
    return Files.getAttribute(cgroup, "unix:ino").toString();
  }

  /**
   * Opens a cgroup's {@code cgroup.events}, so that watching the cgroup's directory reports the end
   * of its last process: the kernel notifies only of files that are in use.
   *
   * @return holds the file open
   */
  Closeable events(Path cgroup) throws IOException {
    return Files.newByteChannel(cgroup.resolve("cgroup.events"));
  }

  /**
   * Opens the module's device as the scheduler, of which there is one at a time.
   *
   * @return takes whole messages
   */
  OutputStream scheduler() throws IOException {
    return Files.newOutputStream(root.resolve("dev/vgpu"), StandardOpenOption.WRITE);
  }

  /**
   * {@return whether programs of offline leases are stopped while an urgent program has objects of
   * the driver's} Off unless the environment says so: such a program may be idle for hours.
   */
  boolean stopsOffline() {
    return "1".equals(System.getenv(STOP_OFFLINE));
  }

  /** {@return what there is to say of working without the module, as a line each} */
  List<String> withoutTheModule() {
    if (isLoaded() || !Files.exists(root.resolve("proc/self/status"))) { // not Linux
      return List.of();
    }
    return List.of(
        foreignFiles()
            .obstacle()
            .map(why -> "other processes' open files cannot be taken (pidfd_getfd): " + why)
            .orElse(
                "other processes' open files can be taken (pidfd_getfd), so vgpu-turns can stop"
                    + " channel groups and set time slices of programs that libvgpu_rm.so is"
                    + " preloaded to (./vgpu kmod interposer); this backend needs the module"));
  }

  ForeignFiles foreignFiles() {
    return new ForeignFiles(root);
  }

  private boolean isLoaded() {
    return Files.isDirectory(module());
  }

  private Path module() {
    return root.resolve("sys/module/vgpu_kmod");
  }

  /** {@return the cgroup of this process} */
  Path ownCgroup() throws IOException {
    for (String line : Files.readAllLines(root.resolve("proc/self/cgroup"), UTF_8)) {
      if (line.startsWith("0::/")) {
        return cgroups().resolve(line.substring("0::/".length())).normalize();
      }
    }
    throw new IOException("/proc/self/cgroup names no cgroup (v2)");
  }

  /** {@return whether a cgroup belongs to a lease} */
  boolean isLease(Path cgroup) {
    Path name = cgroup.getFileName();
    Path above = cgroup.getParent();
    return name != null
        && above != null
        && above.endsWith(DIRECTORY)
        && tenants().exists(name.toString());
  }

  /**
   * {@return the directory of the leases' cgroups, below this process's cgroup, so that its limits
   * apply to them}
   */
  Path leaseCgroups() throws IOException {
    Path own = ownCgroup();
    Path above = own.getParent();
    return above != null && isLease(own) ? above : own.resolve(DIRECTORY);
  }

  /**
   * {@return whether this process has already used CUDA; what it has allocated so far belongs to no
   * tenant}
   */
  boolean hasBegun() {
    try (var files = Files.newDirectoryStream(root.resolve("proc/self/fd"))) {
      for (Path file : files) {
        if (target(file).endsWith("/dev/nvidia-uvm")) {
          return true;
        }
      }
    } catch (IOException e) {
      return false;
    }
    return false;
  }

  private static String target(Path link) {
    try {
      return Files.readSymbolicLink(link).toString();
    } catch (IOException e) {
      return ""; // closed meanwhile
    }
  }

  /** {@return why the backend cannot work here, with a remedy; empty if it can} */
  Optional<String> obstacle() {
    if (!Files.exists(cgroups().resolve("cgroup.controllers"))) {
      return Optional.of(
          "there is no cgroup v2 at /sys/fs/cgroup: boot with"
              + " systemd.unified_cgroup_hierarchy=1, or mount it there");
    }
    if (!isLoaded()) {
      return Optional.of(
          "the kernel module vgpu_kmod is not loaded: build it with ./vgpu kmod build, and load it"
              + " with insmod"
              + lockdown());
    }
    String version = text(module().resolve("version"));
    if (!version.equals(VERSION)) {
      return Optional.of(
          "the kernel module vgpu_kmod has another version: found="
              + (version.isEmpty() ? "none" : version)
              + " needed="
              + VERSION
              + "; load the module of this release");
    }
    if (!Files.isDirectory(tenantDirectory())) {
      return Optional.of(
          "configfs is not mounted at /sys/kernel/config: mount -t configfs none"
              + " /sys/kernel/config");
    }
    if (!Files.isWritable(tenantDirectory())) {
      return Optional.of(
          "this process has no write permission for /sys/kernel/config/vgpu: run it as root");
    }
    return Optional.empty();
  }

  private String lockdown() {
    String text = text(root.resolve("sys/kernel/security/lockdown"));
    return text.contains("[integrity]") || text.contains("[confidentiality]")
        ? "; this kernel is locked down (Secure Boot) and loads signed modules only: sign it with a"
            + " key of the machine's (mokutil --import)"
        : "";
  }

  private static String text(Path file) {
    try {
      return Files.readString(file, UTF_8).strip();
    } catch (IOException e) {
      return "";
    }
  }

  /** {@return the processes of a cgroup and of those below it; none if it is gone} */
  static List<Long> processes(Path cgroup) {
    List<Long> found = new ArrayList<>();
    for (Path each : tree(cgroup)) {
      try {
        Files.readAllLines(each.resolve("cgroup.procs"), UTF_8)
            .forEach(line -> found.add(Long.valueOf(line)));
      } catch (IOException e) {
        // It is gone, or being removed.
      }
    }
    return List.copyOf(found);
  }

  /** {@return a cgroup, then those below it, each before its own} */
  private static List<Path> tree(Path cgroup) {
    try (Stream<Path> found =
        Files.find(cgroup, Integer.MAX_VALUE, (path, is) -> is.isDirectory())) {
      return found.toList();
    } catch (IOException | UncheckedIOException e) {
      return List.of(cgroup); // gone, or one below was removed meanwhile
    }
  }

  /** Removes a cgroup and those below it; the kernel refuses that while one has a process. */
  void removeCgroup(Path cgroup) throws IOException {
    List<Path> found = tree(cgroup);
    for (int i = found.size() - 1; i >= 0; i--) {
      rmdir(found.get(i));
    }
  }

  /** Removes one cgroup. Its files go with it. */
  void rmdir(Path cgroup) throws IOException {
    Files.deleteIfExists(cgroup);
  }
}
