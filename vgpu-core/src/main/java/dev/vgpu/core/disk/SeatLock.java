package dev.vgpu.core.disk;

import dev.vgpu.files.TrustedFiles;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A lock on a file, which the kernel releases when the holder dies, however it dies. The holder's
 * identity is written to a separate file beside it.
 *
 * <p>The kernel's lock belongs to the process and is released when <em>any</em> descriptor of the
 * file is closed. So a JVM that holds the lock must not open the file again, not even to read it.
 * That is why the file is empty. Before a JVM opens the file, it sets a system property, which all
 * copies of this class in the JVM see, whatever their class loader. If that property is lost, the
 * JDK throws an {@link OverlappingFileLockException}. The new descriptor is then kept open until
 * the JVM ends.
 */
public final class SeatLock implements AutoCloseable {
  private static final String ENDING = ".lock";
  private static final int MOST_HOLDER_BYTES = 256;
  private static final String HOLDER = "pid=(\\d{1,18}) start=(\\d{1,18})\\s*";

  /** Files whose lock this JVM holds through another descriptor. They must never be closed. */
  private static final List<RandomAccessFile> neverClosed = new CopyOnWriteArrayList<>();

  /**
   * The result of trying to take a lock.
   *
   * @param lock the lock; null if another holder has it
   * @param holder the holder, if it is known
   */
  public record Outcome(@Nullable SeatLock lock, Optional<ProcessIdentity> holder) {
    /** {@return the holder and its state, for messages; empty if the holder is unknown} */
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
   * Takes the lock if it is free. Does not wait.
   *
   * @param path the lock file; created if it is missing
   * @param self this process
   * @return the lock, or its holder
   * @throws IOException if the file cannot be opened, or its file system does not support locks
   */
  public static Outcome tryTake(Path path, ProcessIdentity self) throws IOException {
    String property = PROPERTY + path.toFile().getCanonicalPath();
    if (System.getProperties().putIfAbsent(property, "taken") != null) {
      return new Outcome(null, Optional.of(self)); // held by this JVM
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
    makePrivate(path);
    RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw");
    FileLock lock;
    try {
      lock = file.getChannel().tryLock();
    } catch (OverlappingFileLockException e) {
      neverClosed.add(file);
      return new Outcome(null, Optional.of(self));
    } catch (IOException e) { // for example ENOLCK: the kernel has no lock to give
      try (file) {
        throw e;
      }
    }
    if (lock == null) {
      file.close();
      return new Outcome(null, holder(path));
    }
    try {
      // Only the lock's holder writes here, so a fixed name is safe; a random one would cost 10 ms.
      Path written = path.resolveSibling(holderFile(path).getFileName() + ".new");
      Files.writeString(written, self + "\n", StandardCharsets.US_ASCII);
      Files.move(written, holderFile(path), StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      overwrite(holderFile(path), self);
    }
    return new Outcome(new SeatLock(file, lock, property), Optional.of(self));
  }

  /** Another user who may read a file can lock it for good. */
  private static void makePrivate(Path path) throws IOException {
    Set<PosixFilePermission> permissions = PosixFilePermissions.fromString("rw-------");
    try {
      Files.createFile(path, PosixFilePermissions.asFileAttribute(permissions));
    } catch (FileAlreadyExistsException e) {
      if (!Files.getPosixFilePermissions(path).equals(permissions)) {
        Files.setPosixFilePermissions(path, permissions);
      }
    }
  }

  /** Fallback on a full disk: the old identity almost always takes enough room for the new one. */
  private static void overwrite(Path holderFile, ProcessIdentity self) {
    byte[] text = (self + "\n").getBytes(StandardCharsets.US_ASCII);
    try (RandomAccessFile file = new RandomAccessFile(holderFile.toFile(), "rw")) {
      // A single write, padded to the old length, so that a reader never sees a mix of both.
      byte[] whole =
          Arrays.copyOf(
              text, (int) Math.max(text.length, Math.min(file.length(), MOST_HOLDER_BYTES)));
      Arrays.fill(whole, text.length, whole.length, (byte) '\n');
      file.write(whole);
    } catch (IOException e) {
      // The holder is then unknown to others, but the lock is held.
    }
  }

  /**
   * {@return the file with the identity of a lock's current or last holder}
   *
   * @param path the lock file
   */
  public static Path holderFile(Path path) {
    String name = path.getFileName().toString();
    String stem = name.endsWith(ENDING) ? name.substring(0, name.length() - ENDING.length()) : name;
    return path.resolveSibling(stem + ".holder");
  }

  /**
   * {@return a lock's current or last holder; empty if it is unknown}
   *
   * @param path the lock file
   */
  public static Optional<ProcessIdentity> holder(Path path) {
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

  /** {@return whether the lock is held: {@link #close} has not been called} */
  public boolean isHeld() {
    return !closed.get();
  }

  /** Releases the lock. A second call does nothing. */
  @Override
  public void close() {
    boolean isFirst = !closed.getAndSet(true);
    try (file) {
      lock.release();
    } catch (IOException e) {
      // The descriptor is closed already or gone, so the lock is not held any more.
    } finally {
      if (isFirst) {
        System.clearProperty(property);
      }
    }
  }
}
