package dev.vgpu.core.disk;

import dev.vgpu.files.TrustedFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A directory for temporary files that is removed when it is closed, and when the JVM ends before
 * that: a daemon thread that works in it ends without a word then. It stays if the JVM is killed.
 * Thread-safe.
 */
public final class PassingDirectory implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(PassingDirectory.class);

  /** While the JVM ends, a thread may still make files: this often it is looked again. */
  private static final int LOOKS = 5;

  private static final long LOOK_NS = 5_000_000;

  private final ReentrantLock lock = new ReentrantLock();
  private final Thread removal = new Thread(this::end, "vgpu-removal");
  private @Nullable Path path;
  private volatile boolean isClosed;

  /**
   * Makes it.
   *
   * @param prefix how its name begins
   * @throws IOException if it cannot be made
   * @throws IllegalStateException if the JVM is ending
   */
  public PassingDirectory(String prefix) throws IOException {
    Runtime.getRuntime().addShutdownHook(removal); // first: it would not be known otherwise
    lock.lock();
    try {
      if (isClosed) {
        throw new IllegalStateException("this JVM is ending");
      }
      path = Files.createTempDirectory(prefix);
    } finally {
      lock.unlock();
      if (path == null) {
        boolean ignored = forget();
      }
    }
  }

  /** {@return its path} */
  public Path path() {
    Path made = path;
    if (made == null) {
      throw new IllegalStateException("it was not made");
    }
    return made;
  }

  /** The JVM ends. Under another name, no thread makes files in it any more. */
  private void end() {
    lock.lock();
    try {
      Path made = path;
      for (int i = 0; i < LOOKS && made != null && !isClosed; i++) {
        try {
          end(made);
        } catch (IOException e) {
          log.debug("a directory of temporary files is there still: {}", made, e);
        }
        LockSupport.parkNanos(this, LOOK_NS);
      }
      isClosed = true;
    } finally {
      lock.unlock();
    }
  }

  private static void end(Path made) throws IOException {
    Path passed = made.resolveSibling(made.getFileName() + "-passed");
    remove(passed);
    if (Files.exists(made, LinkOption.NOFOLLOW_LINKS)) {
      remove(Files.move(made, passed, StandardCopyOption.ATOMIC_MOVE));
    }
  }

  private boolean forget() {
    try {
      return Runtime.getRuntime().removeShutdownHook(removal);
    } catch (IllegalStateException e) {
      return false; // the JVM is ending
    }
  }

  private static void remove(Path directory) throws IOException {
    if (Files.exists(directory, LinkOption.NOFOLLOW_LINKS)) {
      TrustedFiles.deleteTree(directory);
    }
  }

  /**
   * Removes it.
   *
   * @throws IOException if it cannot be removed
   */
  @Override
  public void close() throws IOException {
    remove(path());
    isClosed = true;
    boolean ignored = forget();
  }
}
