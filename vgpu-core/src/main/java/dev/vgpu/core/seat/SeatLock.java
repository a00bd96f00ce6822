package dev.vgpu.core.seat;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A lock on a file that the kernel drops when its holder dies, however it dies. Who holds it is
 * written in the file, for people.
 *
 * <p>The kernel's lock belongs to the process and is dropped when <em>any</em> descriptor of the
 * file is closed. So a JVM that has the lock must not open the file a second time: the JDK says so
 * by an {@link OverlappingFileLockException}, and the descriptor is then kept open for good.
 */
public final class SeatLock implements AutoCloseable {
  private static final Pattern HOLDER = Pattern.compile("pid=(\\d{1,18}) start=(\\d{1,18})\\s*");
  private static final int MOST_TEXT_BYTES = 64;

  /** Files that this JVM has the lock of through another descriptor: must never be closed. */
  private static final List<RandomAccessFile> neverClosed = new CopyOnWriteArrayList<>();

  /**
   * What came of trying to take a lock.
   *
   * @param lock the lock; null: another has it
   * @param holder who has it, if it is known
   */
  public record Outcome(@Nullable SeatLock lock, Optional<ProcessIdentity> holder) {}

  private final RandomAccessFile file;
  private final FileLock lock;

  private SeatLock(RandomAccessFile file, FileLock lock) {
    this.file = file;
    this.lock = lock;
  }

  /**
   * Takes the lock, if nobody has it. Does not wait.
   *
   * @param path the file; made if it is missing
   * @param self this process
   * @return the lock, or who has it
   * @throws IOException if the file cannot be opened, or its file system has no locks
   */
  public static Outcome tryTake(Path path, ProcessIdentity self) throws IOException {
    RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw");
    FileLock lock;
    try {
      lock = file.getChannel().tryLock();
    } catch (OverlappingFileLockException e) {
      neverClosed.add(file);
      return new Outcome(null, Optional.of(self));
    }
    if (lock == null) {
      try (file) {
        return new Outcome(null, holder(file));
      }
    }
    SeatLock taken = new SeatLock(file, lock);
    try {
      byte[] text = (self + "\n").getBytes(StandardCharsets.US_ASCII);
      file.setLength(0);
      file.write(text);
    } catch (IOException e) {
      // A full disk: nobody is told who has the lock, but it holds all the same.
    }
    return new Outcome(taken, Optional.of(self));
  }

  private static Optional<ProcessIdentity> holder(RandomAccessFile file) throws IOException {
    byte[] text = new byte[MOST_TEXT_BYTES];
    int length = Math.max(0, file.read(text));
    Matcher matcher = HOLDER.matcher(new String(text, 0, length, StandardCharsets.US_ASCII));
    return matcher.matches()
        ? Optional.of(
            new ProcessIdentity(Long.parseLong(matcher.group(1)), Long.parseLong(matcher.group(2))))
        : Optional.empty();
  }

  /** Gives the lock back. A second call does nothing. */
  @Override
  public void close() {
    try (file) {
      lock.release();
    } catch (IOException e) {
      // Closed already, or the descriptor is gone: either way the lock is not held any more.
    }
  }
}
