package dev.vgpu.files;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SecureDirectoryStream;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributeView;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Objects;
import java.util.Optional;

/**
 * The rule for every file that is loaded, mapped, believed or deleted: only this process's user and
 * root can have put it there, and only they can change it.
 *
 * <p>A path is trusted if each part of it, from the root directory on, belongs to this process's
 * user, to root, or to the owner of the root directory, and no other user may write to it. A group
 * with the same number as the owner counts as the owner's own. A directory on the way, but not at
 * the end, may be writable by all if it is sticky, as {@code /tmp} is. A link is followed if its
 * owner is one of these too, and its target is checked in the same way. Parts that do not exist yet
 * are accepted.
 *
 * <p>After the check, no other user can make the path lead elsewhere, because that needs write
 * access to a directory that was checked. So the path need not be held open. The check proves
 * nothing about other processes of the same user.
 */
public final class TrustedFiles {
  private static final int MOST_LINKS = 40;

  private TrustedFiles() {}

  /**
   * {@return why a path is not trusted; empty if it is}
   *
   * @param path need not exist
   */
  public static Optional<String> objection(Path path) {
    try {
      Path ignored = check(path);
      return Optional.empty();
    } catch (IOException e) {
      return Optional.of(
          e instanceof UntrustedFileException ? String.valueOf(e.getMessage()) : e.toString());
    }
  }

  /**
   * {@return the path without links}
   *
   * @param path need not exist
   * @throws UntrustedFileException if another user can change it
   * @throws IOException if the path cannot be read
   */
  public static Path check(Path path) throws IOException {
    Path absolute = path.toAbsolutePath();
    Path root = Objects.requireNonNull(absolute.getRoot(), "root");
    Deque<Path> ahead = new ArrayDeque<>();
    absolute.forEach(ahead::add);
    int links = 0;
    Path at = root;
    FileEntry.of(root).check(ahead.isEmpty());
    while (!ahead.isEmpty()) {
      Path name = ahead.removeFirst();
      if (name.toString().equals("..")) {
        at = at.equals(root) ? root : Objects.requireNonNull(at.getParent(), "parent");
        continue;
      }
      Path next = at.resolve(name).normalize(); // removes a dot
      FileEntry entry;
      try {
        entry = FileEntry.of(next);
      } catch (NoSuchFileException e) {
        for (Path missing : ahead) {
          next = next.resolve(missing);
        }
        return next.normalize();
      }
      if (!entry.isLink()) {
        entry.check(ahead.isEmpty());
        at = next;
        continue;
      }
      entry.checkOwner();
      if (++links > MOST_LINKS) {
        throw new UntrustedFileException("too many links: path=" + path);
      }
      Path target = Files.readSymbolicLink(next);
      at = target.isAbsolute() ? root : at;
      for (int i = target.getNameCount() - 1; i >= 0; i--) {
        ahead.addFirst(target.getName(i));
      }
    }
    return at;
  }

  /**
   * Checks a directory that must hold no file of another user. Checks the directory itself, that no
   * group may write to it, and the owner of each entry; it does not descend.
   *
   * @param directory must exist
   * @throws UntrustedFileException if another user can change it, or has put something into it
   * @throws IOException if the directory cannot be read
   */
  public static void checkPrivate(Path directory) throws IOException {
    FileEntry.of(check(directory)).checkPrivate();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory)) {
      for (Path file : files) {
        try {
          FileEntry.of(file).checkOwner();
        } catch (NoSuchFileException ignored) {
          // Another process removed it in the meantime.
        }
      }
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
  }

  /**
   * {@return a directory without links in its path} Missing directories are created, with access
   * for their owner only.
   *
   * @param directory the directory
   * @throws UntrustedFileException if another user can change it
   * @throws IOException if it cannot be created
   */
  public static Path makeDirectories(Path directory) throws IOException {
    Path made = check(directory);
    Files.createDirectories(
        made, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    return check(made); // in a sticky directory, another user may have been first
  }

  /**
   * {@return the content of a file that is not a link}
   *
   * @param file a regular file
   * @param mostBytes the longest content allowed
   * @throws UntrustedFileException if another user can change it
   * @throws IOException if it cannot be read, is too long, or is not a regular file
   */
  public static byte[] read(Path file, int mostBytes) throws IOException {
    return readAtMost(checkFile(file), mostBytes);
  }

  /**
   * {@return the content of a file that is not a link, to be closed after use}
   *
   * @param file a regular file
   * @throws UntrustedFileException if another user can change it
   * @throws IOException if it cannot be read, or is not a regular file
   */
  public static InputStream open(Path file) throws IOException {
    return new FileInputStream(checkFile(file).toFile());
  }

  private static Path checkFile(Path file) throws IOException {
    Path real = check(file);
    // Checked before opening: opening a pipe blocks until its other end is open.
    if (!Files.isRegularFile(real, LinkOption.NOFOLLOW_LINKS)) {
      if (!Files.exists(real, LinkOption.NOFOLLOW_LINKS)) {
        throw new NoSuchFileException(file.toString());
      }
      throw new IOException("not a file: path=" + file);
    }
    return real;
  }

  /**
   * {@return the content of a file as UTF-8 text}
   *
   * @param file a regular file
   * @param mostBytes the longest content allowed
   * @throws UntrustedFileException if another user can change it
   * @throws IOException as {@link #read}
   */
  public static String readText(Path file, int mostBytes) throws IOException {
    return new String(read(file, mostBytes), StandardCharsets.UTF_8);
  }

  /**
   * {@return the content of a file that a person named, whoever owns it; it may be a pipe}
   *
   * @param file the file to read
   * @param mostBytes the longest content allowed
   * @throws TooLongException if it is longer
   * @throws NoSuchFileException if it does not exist
   * @throws IOException if it cannot be read
   */
  public static byte[] readAtMost(Path file, int mostBytes) throws IOException {
    if (!Files.exists(file)) {
      throw new NoSuchFileException(file.toString());
    }
    // A stream, not a channel: interrupting the calling thread would close a channel.
    try (InputStream in = new FileInputStream(file.toFile())) {
      byte[] bytes = in.readNBytes(mostBytes + 1);
      if (bytes.length > mostBytes) {
        throw new TooLongException("longer than " + mostBytes + " bytes: path=" + file);
      }
      return bytes;
    }
  }

  /**
   * Writes a file atomically: afterwards it is there in full or not at all.
   *
   * @param file in a directory that exists
   * @param bytes the content
   * @param permissions in the form {@code rw-r--r--}
   * @throws UntrustedFileException if another user can change its directory
   * @throws IOException if it cannot be written
   */
  public static void put(Path file, byte[] bytes, String permissions) throws IOException {
    Path place = check(Objects.requireNonNull(file.toAbsolutePath().getParent(), "parent"));
    Path name = Objects.requireNonNull(file.getFileName(), "name");
    Path part = Files.createTempFile(place, "." + name, ".part");
    try {
      Files.write(part, bytes);
      Files.setPosixFilePermissions(part, PosixFilePermissions.fromString(permissions));
      Files.move(
          part,
          place.resolve(name),
          StandardCopyOption.ATOMIC_MOVE,
          StandardCopyOption.REPLACE_EXISTING);
    } catch (FileAlreadyExistsException e) {
      throw new IOException("something else is in its place: file=" + file, e);
    } finally {
      Files.deleteIfExists(part);
    }
  }

  /**
   * Deletes a directory and everything in it. Follows no link, not even one that replaces a
   * directory during the deletion.
   *
   * @param directory owned by this user or root; nothing happens if it does not exist
   * @throws UntrustedFileException if another user can change it; nothing is deleted then
   * @throws IOException if something in it cannot be deleted
   */
  public static void deleteTree(Path directory) throws IOException {
    Path real = check(directory);
    if (!Files.exists(real, LinkOption.NOFOLLOW_LINKS)) {
      return;
    }
    try (DirectoryStream<Path> opened = Files.newDirectoryStream(real)) {
      if (!(opened instanceof SecureDirectoryStream<Path> files)) {
        throw new IOException("directories cannot be held open here: path=" + directory);
      }
      deleteContent(files);
    }
    Files.delete(real);
  }

  private static void deleteContent(SecureDirectoryStream<Path> directory) throws IOException {
    for (Path file : directory) {
      Path name = Objects.requireNonNull(file.getFileName(), "name");
      boolean isDirectory =
          directory
              .getFileAttributeView(name, BasicFileAttributeView.class, LinkOption.NOFOLLOW_LINKS)
              .readAttributes()
              .isDirectory();
      if (isDirectory) {
        try (SecureDirectoryStream<Path> inner =
            directory.newDirectoryStream(name, LinkOption.NOFOLLOW_LINKS)) {
          deleteContent(inner);
        }
        directory.deleteDirectory(name);
      } else {
        directory.deleteFile(name);
      }
    }
  }
}
