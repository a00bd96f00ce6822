package dev.vgpu.core.disk;

import dev.vgpu.files.TrustedFiles;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A lock on a file that the kernel drops when its holder dies, however it dies. Who holds it is
 * written in a file beside it, for people.
 *
 * <p>The kernel's lock belongs to the process and is dropped when <em>any</em> descriptor of the
 * file is closed. So a JVM that has the lock must not open the file a second time, not even to read
 * it, which is why nothing is in it. Before it opens the file it says so in a system property,
 * which all copies of this class in the JVM see, whatever class loaders they come from. Where that
 * is lost, the JDK says so by an {@link OverlappingFileLockException}, and the descriptor is then
 * kept open for good.
 */
public final class SeatLock implements AutoCloseable {
  private static final String ENDING = ".lock";
  private static final int MOST_HOLDER_BYTES = 256;
  private static final String HOLDER = "pid=(\\d{1,18}) start=(\\d{1,18})\\s*";

  /** Files that this JVM has the lock of through another descriptor: must never be closed. */
  private static final List<RandomAccessFile> neverClosed = new CopyOnWriteArrayList<>();

  /**
   * What came of trying to take a lock.
   *
   * @param lock the lock; null: another has it
   * @param holder who has it, if it is known
   */
  public record Outcome(@Nullable SeatLock lock, Optional<ProcessIdentity> holder) {
    /** {@return who has it and what that process is doing, for messages; empty: not known} */
    public String describedHolder() {
      return holder.map(process -> " " + process.described()).orElse("");
    }
  }

  private static final String PROPERTY = "dev.vgpu.lock.";

  private final RandomAccessFile file;
  private final FileLock lock;
  private final String property;
  private final AtomicBoolean closed = new AtomicBoolean();

  private SeatLock(RandomAccessFile file, FileLock lock, String property) {
    this.file = file;
    this.lock = lock;
    this.property = property;
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
    String property = PROPERTY + path.toFile().getCanonicalPath();
    if (System.getProperties().putIfAbsent(property, "taken") != null) {
      return new Outcome(null, Optional.of(self)); // by this JVM
    }
    Outcome outcome = new Outcome(null, Optional.empty());
    try {
      outcome = tryTakeFirst(path, self, property);
      return outcome;
    } finally {
      if (outcome.lock() == null) {
        System.clearProperty(property);
      }
    }
  }

  private static Outcome tryTakeFirst(Path path, ProcessIdentity self, String property)
      throws IOException {
    RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw");
    FileLock lock;
    try {
      lock = file.getChannel().tryLock();
    } catch (OverlappingFileLockException e) {
      neverClosed.add(file);
      return new Outcome(null, Optional.of(self));
    }
    if (lock == null) {
      file.close();
      return new Outcome(null, holder(path));
    }
    try {
      // Who has the lock is alone here; a temporary file's random name would cost 10 ms.
      Path written = path.resolveSibling(holderFile(path).getFileName() + ".new");
      Files.writeString(written, self + "\n", StandardCharsets.US_ASCII);
      Files.move(written, holderFile(path), StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      overwrite(holderFile(path), self);
    }
    return new Outcome(new SeatLock(file, lock, property), Optional.of(self));
  }

  /** On a full disk: the last holder's name has room for this one's, or almost always. */
  private static void overwrite(Path holderFile, ProcessIdentity self) {
    byte[] text = (self + "\n").getBytes(StandardCharsets.US_ASCII);
    try (RandomAccessFile file = new RandomAccessFile(holderFile.toFile(), "rw")) {
      // One write, of blanks as well where the old one was longer: no reader sees half of it.
      byte[] whole =
          Arrays.copyOf(
              text, (int) Math.max(text.length, Math.min(file.length(), MOST_HOLDER_BYTES)));
      Arrays.fill(whole, text.length, whole.length, (byte) '\n');
      file.write(whole);
    } catch (IOException e) {
      // Nobody is told who has the lock, but it holds all the same.
    }
  }

  /**
   * {@return where it is written who has, or had, a lock}
   *
   * @param path the lock's file
   */
  public static Path holderFile(Path path) {
    String name = path.getFileName().toString();
    String stem = name.endsWith(ENDING) ? name.substring(0, name.length() - ENDING.length()) : name;
    return path.resolveSibling(stem + ".holder");
  }

  private static Optional<ProcessIdentity> holder(Path path) {
    String text;
    try {
      text = TrustedFiles.readText(holderFile(path), MOST_HOLDER_BYTES);
    } catch (IOException e) {
      return Optional.empty();
    }
    Matcher matcher = Pattern.compile(HOLDER).matcher(text);
    return matcher.matches()
        ? Optional.of(
            new ProcessIdentity(Long.parseLong(matcher.group(1)), Long.parseLong(matcher.group(2))))
        : Optional.empty();
  }

  /** {@return whether it has not been given back; nor is about to be} */
  public boolean isHeld() {
    return !closed.get();
  }

  /** Gives the lock back. A second call does nothing. */
  @Override
  public void close() {
    boolean isFirst = !closed.getAndSet(true);
    try (file) {
      lock.release();
    } catch (IOException e) {
      // Closed already, or the descriptor is gone: either way the lock is not held any more.
    } finally {
      if (isFirst) {
        System.clearProperty(property);
      }
    }
  }
}
