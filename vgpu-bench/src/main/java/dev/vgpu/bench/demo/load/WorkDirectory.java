package dev.vgpu.bench.demo.load;

import dev.vgpu.bench.demo.figure.DemoOptions;
import dev.vgpu.files.TrustedFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The directory of a run's logs and files. It is deleted at the end, also when this JVM ends on
 * Ctrl-C, unless it is to be kept.
 */
public final class WorkDirectory implements AutoCloseable {
  private final Path path;
  private final DemoOptions.Logs logs;
  private final Thread hook = new Thread(this::delete, "vgpu-work-directory");

  private WorkDirectory(Path path, DemoOptions.Logs logs) {
    this.path = path;
    this.logs = logs;
    Runtime.getRuntime().addShutdownHook(hook);
  }

  public static WorkDirectory create(DemoOptions.Logs logs) throws IOException {
    return new WorkDirectory(Files.createTempDirectory("vgpu-demo-"), logs);
  }

  /** {@return the directory} */
  public Path path() {
    return path;
  }

  @Override
  public void close() {
    delete();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // This JVM is shutting down, and the shutdown hook does the same.
    }
  }

  private void delete() {
    if (logs == DemoOptions.Logs.KEEP) {
      return;
    }
    try {
      TrustedFiles.deleteTree(path);
    } catch (IOException e) {
      // A file stays behind in the temporary directory, which the system cleans.
    }
  }
}
