package dev.vgpu.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/** Makes the kernel reuse the pid of an ended process. */
public final class ReusedPid {
  private static final Path LAST_PID = Path.of("/proc/sys/kernel/ns_last_pid");

  private ReusedPid() {}

  /**
   * Starts a process with a given pid. Other programs start processes too, so it may take several
   * tries.
   *
   * @param pid the pid, which must be free
   * @param command starts it
   * @return the process; empty if this user may not choose pids
   * @throws IOException if it cannot be started
   * @throws InterruptedException if the thread was interrupted
   */
  public static Optional<Process> start(long pid, String... command)
      throws IOException, InterruptedException {
    while (true) {
      try {
        Files.writeString(LAST_PID, Long.toString(pid - 1));
      } catch (IOException e) {
        return Optional.empty(); // only root may choose pids
      }
      Process process = new ProcessBuilder(command).start();
      if (process.pid() == pid) {
        return Optional.of(process);
      }
      process.destroyForcibly();
      int ignored = process.waitFor();
    }
  }
}
