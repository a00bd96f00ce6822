package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** What this machine's kernel has for the backend. Immutable. */
class Machine {
  /** Of the module: an older or newer one may have other files. */
  static final String VERSION = "0.1.0";

  private static final String DIRECTORY = "vgpu";

  private final Path root;

  /**
   * @param root the file system's root, or a directory that stands for it
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

  /** The number by which the module knows a cgroup. */
  String number(Path cgroup) throws IOException {
    return Files.getAttribute(cgroup, "unix:ino").toString();
  }

  /**
   * Lets the watch of a cgroup's directory hear of its last process's end: the kernel tells that of
   * a file that is known to somebody, and of no other.
   *
   * @return what has it open
   */
  Closeable events(Path cgroup) throws IOException {
    return Files.newByteChannel(cgroup.resolve("cgroup.events"));
  }

  /** The cgroup of this process. */
  Path ownCgroup() throws IOException {
    for (String line : Files.readAllLines(root.resolve("proc/self/cgroup"), UTF_8)) {
      if (line.startsWith("0::/")) {
        return cgroups().resolve(line.substring("0::/".length())).normalize();
      }
    }
    throw new IOException("/proc/self/cgroup names no cgroup (v2)");
  }

  /** Whether a cgroup is that of a lease. */
  boolean isLease(Path cgroup) {
    Path name = cgroup.getFileName();
    Path above = cgroup.getParent();
    return name != null
        && above != null
        && above.endsWith(DIRECTORY)
        && tenants().exists(name.toString());
  }

  /** Where the cgroups of leases are made: below that of this process, whose limits they keep. */
  Path leaseCgroups() throws IOException {
    Path own = ownCgroup();
    Path above = own.getParent();
    return above != null && isLease(own) ? above : own.resolve(DIRECTORY);
  }

  /** Whether this process has begun with CUDA: what it allocated so far is nobody's. */
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

  /** Why the backend cannot work here, with the remedy. */
  Optional<String> obstacle() {
    if (!Files.exists(cgroups().resolve("cgroup.controllers"))) {
      return Optional.of(
          "there is no cgroup v2 at /sys/fs/cgroup: boot with"
              + " systemd.unified_cgroup_hierarchy=1, or mount it there");
    }
    Path module = root.resolve("sys/module/vgpu_kmod");
    if (!Files.isDirectory(module)) {
      return Optional.of(
          "the kernel module vgpu_kmod is not loaded: build it with ./vgpu kmod build, and load it"
              + " with insmod"
              + lockdown());
    }
    String version = text(module.resolve("version"));
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
      return Optional.of("this process may not write /sys/kernel/config/vgpu: run it as root");
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

  /** The processes of a cgroup; none where it is gone. */
  static List<Long> processes(Path cgroup) {
    try {
      return Files.readAllLines(cgroup.resolve("cgroup.procs"), UTF_8).stream()
          .map(Long::valueOf)
          .toList();
    } catch (IOException e) {
      return List.of(); // it is gone, or on its way
    }
  }
}
