package dev.vgpu.bench.demo.load;

import dev.vgpu.bench.demo.figure.DemoOptions;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.files.TrustedFiles;
import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The directory of a run's logs and files. It is deleted at the end, also when this JVM ends on
 * Ctrl-C, unless it is to be kept.
 */
public final class WorkDirectory implements AutoCloseable {
  /** ONNX Runtime unpacks its library beside it: 28 MiB. The rest is for logs and pages. */
  private static final long NEEDED_BYTES = 64L << 20;

  private final Path path;
  private final DemoOptions.Logs logs;
  private final Thread hook = new Thread(this::delete, "vgpu-work-directory");

  private WorkDirectory(Path path, DemoOptions.Logs logs) {
    this.path = path;
    this.logs = logs;
    Runtime.getRuntime().addShutdownHook(hook);
  }

  /** {@return a new directory below {@code java.io.tmpdir}} */
  public static WorkDirectory create(DemoOptions.Logs logs) throws UserException {
    return create(logs, JavaCommand.temporaryDirectory(), NEEDED_BYTES);
  }

  static WorkDirectory create(DemoOptions.Logs logs, Path place, long neededBytes)
      throws UserException {
    String reason;
    try {
      Path path = Files.createTempDirectory(place, "vgpu-demo-");
      long free = path.toFile().getUsableSpace();
      if (free >= neededBytes) {
        return new WorkDirectory(path, logs);
      }
      Files.delete(path);
      reason = (free >> 20) + " MiB are free, and it needs " + (neededBytes >> 20);
    } catch (FileSystemException e) {
      reason = e.getReason() == null ? "there is no such directory" : e.getReason();
    } catch (IOException e) {
      reason = String.valueOf(e.getMessage());
    }
    throw new UserException(
        "the demo cannot use the temporary directory "
            + place
            + ": "
            + reason
            + ". Name another: VGPU_JAVA_OPTS=-Djava.io.tmpdir=DIR");
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
