package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.Closeable;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;

/** Directories that replace configfs and the cgroups, with the module loaded. */
final class StandInMachine extends Machine {
  private static final List<String> FILES =
      List.of("limit", "used", "peak", "cgroup", "weight", "class", "stats");

  /** Tenants that were removed. */
  final BlockingQueue<String> removed = new LinkedBlockingQueue<>();

  /** Messages to the module's device, also {@code open}, {@code busy} and {@code close}. */
  final BlockingQueue<String> said = new LinkedBlockingQueue<>();

  /** Receives the list of a cgroup's processes just before it is removed. */
  volatile Consumer<Path> entering = processes -> {};

  /** Another process is the scheduler. */
  volatile boolean busy;

  volatile boolean stopsOffline = true;

  StandInMachine(Path root) throws IOException {
    super(root);
    put(root, "sys/fs/cgroup/cgroup.controllers", "");
    put(root, "sys/module/vgpu_kmod/version", VERSION + "\n");
    put(root, "proc/self/cgroup", "0::/service\n");
    Files.createDirectories(root.resolve("proc/self/fd"));
    Files.createDirectories(root.resolve("sys/fs/cgroup/service"));
    Files.createDirectories(tenantDirectory());
  }

  private static void put(Path root, String file, String text) throws IOException {
    Files.createDirectories(root.resolve(file).getParent());
    Files.writeString(root.resolve(file), text);
  }

  @Override
  boolean stopsOffline() {
    return stopsOffline;
  }

  @Override
  Tenants tenants() {
    return new StandIn(tenantDirectory());
  }

  @Override
  Closeable events(Path cgroup) throws IOException {
    Files.writeString(cgroup.resolve("cgroup.events"), "populated 0\n");
    return super.events(cgroup);
  }

  @Override
  void rmdir(Path cgroup) throws IOException {
    Path processes = cgroup.resolve("cgroup.procs");
    entering.accept(processes);
    if (Files.exists(processes) && Files.size(processes) > 0) {
      throw new FileSystemException(cgroup.toString(), null, "Device or resource busy");
    }
    Files.deleteIfExists(processes);
    Files.deleteIfExists(cgroup.resolve("cgroup.events"));
    super.rmdir(cgroup);
  }

  @Override
  OutputStream scheduler() throws IOException {
    if (busy) {
      said.add("busy");
      throw new FileSystemException("/dev/vgpu", null, "Device or resource busy");
    }
    said.add("open");
    return new OutputStream() {
      @Override
      public void write(int octet) {
        throw new AssertionError("a message in parts");
      }

      @Override
      public void write(byte[] octets) {
        said.add(new String(octets, US_ASCII));
      }

      @Override
      public void close() {
        said.add("close");
      }
    };
  }

  /** Like the kernel, creates and removes a directory's files with it. */
  private final class StandIn extends Tenants {
    private final Path directory;

    StandIn(Path directory) {
      super(directory);
      this.directory = directory;
    }

    @Override
    void make(String tenant) throws IOException {
      super.make(tenant);
      for (String file : FILES) {
        Files.writeString(directory.resolve(tenant).resolve(file), "0\n");
      }
    }

    @Override
    void remove(String tenant) throws IOException {
      for (String file : FILES) {
        Files.deleteIfExists(directory.resolve(tenant).resolve(file));
      }
      super.remove(tenant);
      removed.add(tenant);
    }
  }
}
