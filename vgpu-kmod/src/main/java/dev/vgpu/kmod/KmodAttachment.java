package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.US_ASCII;

import dev.vgpu.VgpuException;
import dev.vgpu.spi.ProcessAttachment;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Keeps this process in a lease's cgroup; a process is under one lease at a time. Safe for use by
 * several threads.
 */
final class KmodAttachment implements ProcessAttachment {
  private final Path before;
  private boolean open = true;

  private KmodAttachment(Path before) {
    this.before = before;
  }

  static KmodAttachment attach(Machine machine, Path cgroup) {
    try {
      Path before = machine.ownCgroup();
      if (before.equals(cgroup)) {
        throw new IllegalStateException("this process is under this lease already: " + cgroup);
      }
      if (machine.isLease(before)) {
        throw new VgpuException(
            "this process is under another lease, and kmod puts it under one at a time: cgroup="
                + before);
      }
      if (machine.hasBegun()) {
        throw new IllegalStateException(
            "this process has already used CUDA: attach it before the first call");
      }
      move(cgroup);
      return new KmodAttachment(before);
    } catch (IOException e) {
      throw new VgpuException(
          "this process cannot be moved into the lease's cgroup: cgroup=" + cgroup, e);
    }
  }

  /** Moves the whole process: 0 stands for the writer. */
  private static void move(Path cgroup) throws IOException {
    Files.writeString(
        cgroup.resolve("cgroup.procs"),
        "0",
        US_ASCII,
        StandardOpenOption.WRITE,
        StandardOpenOption.TRUNCATE_EXISTING);
  }

  @Override
  public void bindThread() {
    // The whole process is under the lease, so threads need no binding.
  }

  @Override
  public void unbindThread() {
    // As in bindThread.
  }

  @Override
  public synchronized void close() {
    if (!open) {
      return;
    }
    open = false;
    try {
      move(before);
    } catch (IOException e) {
      // The process stays in the lease's cgroup, and gets no memory there once the lease has ended.
    }
  }
}
