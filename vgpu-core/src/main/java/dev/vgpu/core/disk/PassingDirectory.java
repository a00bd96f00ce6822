package dev.vgpu.core.disk;

import dev.vgpu.files.TrustedFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A directory for temporary files that is removed when it is closed, or when the JVM ends before
 * that: a daemon thread that works in it ends without a word then. It stays if the JVM is killed.
 */
public final class PassingDirectory implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(PassingDirectory.class);

  private final Path path;
  private final Thread removal = new Thread(this::end, "vgpu-removal");

  /**
   * Makes it.
   *
   * @param prefix how its name begins
   * @throws IOException if it cannot be made
   * @throws IllegalStateException if the JVM is ending
   */
  public PassingDirectory(String prefix) throws IOException {
    path = Files.createTempDirectory(prefix);
    try {
      Runtime.getRuntime().addShutdownHook(removal);
    } catch (IllegalStateException e) {
      Files.delete(path);
      throw e;
    }
  }

  /** {@return its path} */
  public Path path() {
    return path;
  }

  /** The JVM ends. Under another name, no thread makes files in it any more. */
  private void end() {
    try {
      Path passed = path.resolveSibling(path.getFileName() + "-passed");
      Files.move(path, passed, StandardCopyOption.ATOMIC_MOVE);
      try {
        TrustedFiles.deleteTree(passed);
      } catch (IOException e) {
        TrustedFiles.deleteTree(passed); // without the file that was being made
      }
    } catch (IOException e) {
      log.debug("a directory of temporary files is still there: {}", path, e);
    }
  }

  /**
   * Removes it.
   *
   * @throws IOException if it cannot be removed
   */
  @Override
  public void close() throws IOException {
    TrustedFiles.deleteTree(path);
    try {
      boolean ignored = Runtime.getRuntime().removeShutdownHook(removal);
    } catch (IllegalStateException e) {
      // The JVM is ending, and finds nothing to remove.
    }
  }
}
