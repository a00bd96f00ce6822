package dev.vgpu.cli.container;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.cli.console.UserException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SecureDirectoryStream;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributeView;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Objects;

/**
 * A file that exists for other processes to read while this object is open. It appears atomically.
 * It is locked, so that no second process replaces it meanwhile; a file left behind by a dead
 * process is replaced. {@link #close} removes it, unless the file there is a different one by then.
 * Confined to one thread.
 */
public final class PublishedFile implements AutoCloseable {
  private final Path file;
  private final FileChannel content;

  /** Held open, so that the file is removed from the same directory in which it was created. */
  private final DirectoryStream<Path> directory;

  private final Object key;

  private PublishedFile(
      Path file, FileChannel content, DirectoryStream<Path> directory, Object key) {
    this.file = file;
    this.content = content;
    this.directory = directory;
    this.key = key;
  }

  /**
   * {@return a file for others to read}
   *
   * @param target where the file goes; its directory must exist
   * @param text the file's content
   * @throws UserException if another live process has its own file there
   * @throws IOException if it cannot be written
   */
  public static PublishedFile write(Path target, String text) throws IOException, UserException {
    Path parent = Objects.requireNonNull(target.toAbsolutePath().getParent(), "parent");
    Path file = parent.toRealPath().resolve(Objects.requireNonNull(target.getFileName(), "name"));
    // Runtimes read only names that end in .json or .yaml.
    Path part = Files.createTempFile(file.getParent(), ".vgpu-cdi", ".part");
    FileChannel content = FileChannel.open(part, StandardOpenOption.WRITE);
    @SuppressWarnings("StreamResourceLeak") // the returned object closes it
    DirectoryStream<Path> directory = Files.newDirectoryStream(file.getParent());
    boolean written = false;
    try {
      Object ignored = Objects.requireNonNull(content.tryLock(), "lock"); // not public yet
      ByteBuffer bytes = ByteBuffer.wrap(text.getBytes(UTF_8));
      while (bytes.hasRemaining()) {
        content.write(bytes);
      }
      Files.setPosixFilePermissions(part, PosixFilePermissions.fromString("rw-r--r--"));
      Object key = key(Files.getFileAttributeView(part, BasicFileAttributeView.class));
      refuseAnothers(file);
      Files.move(part, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
      written = true;
      return new PublishedFile(file, content, directory, key);
    } finally {
      if (!written) {
        content.close();
        directory.close();
        Files.deleteIfExists(part);
      }
    }
  }

  private static void refuseAnothers(Path file) throws IOException, UserException {
    if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) || !Files.isWritable(file)) {
      return;
    }
    try (FileChannel there =
            FileChannel.open(file, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
        FileLock lock = there.tryLock()) {
      if (lock == null) {
        throw another(file);
      }
    } catch (OverlappingFileLockException e) {
      throw another(file);
    } catch (NoSuchFileException e) {
      return; // its owner has just terminated
    }
  }

  private static UserException another(Path file) {
    return new UserException(
        file + " describes the device of another process, which lives; name another file");
  }

  private static Object key(BasicFileAttributeView file) throws IOException {
    return Objects.requireNonNull(file.readAttributes().fileKey(), "key");
  }

  /** Removes the file, unless a different one is there by now. */
  @Override
  public void close() throws IOException {
    try (content;
        directory) {
      Path name = Objects.requireNonNull(file.getFileName(), "name");
      if (directory instanceof SecureDirectoryStream<Path> held
          && key(held.getFileAttributeView(
                  name, BasicFileAttributeView.class, LinkOption.NOFOLLOW_LINKS))
              .equals(key)) {
        held.deleteFile(name);
      }
    } catch (NoSuchFileException e) {
      return; // already removed by someone else
    }
  }
}
