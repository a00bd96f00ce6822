package dev.vgpu.bench.gpucheck.machine;

import dev.vgpu.files.TrustedFiles;
import java.io.File;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * The working directory of a check. It is removed at the end, also on Ctrl-C; the next check
 * removes the directory of one that was killed. Safe for use by several threads.
 */
public final class WorkPlace {
  private static final String PREFIX = "vgpu-gpu-check";

  /** The file, in the directory, that names its owner. */
  private static final String OWNER = "owner";

  private static final int MOST_OWNER_BYTES = 64;

  /** How long a step needs to end itself and the processes that it started. */
  private static final long ENDING_SECONDS = 8;

  private final Path directory;
  private volatile boolean kept;
  private volatile boolean isEnding;

  private WorkPlace(Path directory) {
    this.directory = directory;
  }

  /** Creates a directory, and removes those whose processes have ended. */
  public static WorkPlace make() throws IOException {
    return make(Path.of(System.getProperty("java.io.tmpdir", "/tmp")));
  }

  /** Creates it below a directory, and removes those there whose processes have ended. */
  public static WorkPlace make(Path base) throws IOException {
    try (DirectoryStream<Path> others = Files.newDirectoryStream(base, PREFIX + "*")) {
      for (Path other : others) {
        if (isLeftBehind(other)) {
          remove(other);
        }
      }
    }
    Path made = Files.createTempDirectory(base, PREFIX);
    Files.writeString(made.resolve(OWNER), identity(ProcessHandle.current()));
    return new WorkPlace(made);
  }

  /** A kept directory has no owner file. One that another user could change is not ours. */
  private static boolean isLeftBehind(Path directory) {
    try {
      String owner = TrustedFiles.readText(directory.resolve(OWNER), MOST_OWNER_BYTES);
      long pid = Long.parseLong(owner.substring(0, owner.indexOf(' ')));
      return ProcessHandle.of(pid).map(process -> !identity(process).equals(owner)).orElse(true);
    } catch (IOException | NumberFormatException | StringIndexOutOfBoundsException e) {
      return false;
    }
  }

  /** A process id may be reused, but not with the same start time. */
  private static String identity(ProcessHandle process) {
    return process.pid()
        + " "
        + process.info().startInstant().map(start -> start.toEpochMilli()).orElse(0L);
  }

  /** {@return the directory} */
  public Path directory() {
    return directory;
  }

  /** Leaves the directory in place permanently. */
  public void keep() {
    kept = true;
    File owner = directory.resolve(OWNER).toFile();
    if (!owner.delete()) {
      System.err.println("gpu-check: cannot remove " + owner);
    }
  }

  /** {@return whether this process was told to terminate: nothing may be started any more} */
  public boolean isEnding() {
    return isEnding;
  }

  /** Terminates what this process runs, when it is told to terminate itself. */
  public void end() {
    isEnding = true;
    List<ProcessHandle> running = ProcessHandle.current().children().toList();
    while (!running.isEmpty()) { // another one may have been about to start
      running.forEach(ProcessHandle::destroy);
      running.forEach(WorkPlace::await);
      running = ProcessHandle.current().children().filter(ProcessHandle::isAlive).toList();
    }
    if (!kept) {
      remove();
    }
  }

  private static void await(ProcessHandle process) {
    try {
      Object ignored = process.onExit().get(ENDING_SECONDS, TimeUnit.SECONDS);
    } catch (java.util.concurrent.ExecutionException
        | java.util.concurrent.TimeoutException
        | InterruptedException e) {
      process.destroyForcibly();
    }
  }

  /** Removes the directory. Idempotent: the working thread and the shutdown thread both call it. */
  public synchronized void remove() {
    remove(directory);
  }

  private static void remove(Path directory) {
    try {
      TrustedFiles.deleteTree(directory);
    } catch (IOException e) {
      System.err.println("gpu-check: cannot remove " + directory + ": " + e.getMessage());
    }
  }
}
