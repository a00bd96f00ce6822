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
 * The one rule for every file that is loaded, mapped, believed or deleted: nobody but this
 * process's user and root can have put it there, or can change it.
 *
 * <p>It holds of a path if each part of it, from the root directory on, belongs to this process's
 * user, to root, or to the owner of the root directory, and no other user may write to it. A group
 * that has the number of its owner counts as its owner's own. On the way, not at the end, a
 * directory may be one that all may write to if it is sticky, as {@code /tmp} is. Links are
 * followed where they too belong to one of these, and what they lead to is looked at in the same
 * way. What is not there yet is no objection.
 *
 * <p>A path that passed cannot be made to lead elsewhere by another user afterwards, since that
 * needs the right to write to a directory that was looked at. So it need not be held open. Of other
 * processes of the same user nothing is proved.
 */
public final class TrustedFiles {
  private static final int MOST_LINKS = 40;

  private TrustedFiles() {}

  /**
   * {@return why a path is not trusted; empty if it is}
   *
   * @param path need not be there
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
   * @param path need not be there
   * @throws UntrustedFileException if another user can change it
   * @throws IOException if it cannot be looked at
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
      Path next = at.resolve(name).normalize(); // without a dot
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
   * Checks a directory in which nobody else may have anything: itself, that no group may write to
   * it, and all that is in it, but not what is further down.
   *
   * @param directory is there
   * @throws UntrustedFileException if another user can change it, or has put something into it
   * @throws IOException if it cannot be looked at
   */
  public static void checkPrivate(Path directory) throws IOException {
    FileEntry.of(check(directory)).checkPrivate();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory)) {
      for (Path file : files) {
        try {
          FileEntry.of(file).checkOwner();
        } catch (NoSuchFileException ignored) {
          // It was removed meanwhile.
        }
      }
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
  }

  /**
   * {@return a directory without links in its path} It is made where it is not there, for its owner
   * alone, with those above it.
   *
   * @param directory which
   * @throws UntrustedFileException if another user can change it
   * @throws IOException if it cannot be made
   */
  public static Path makeDirectories(Path directory) throws IOException {
    Path made = check(directory);
    Files.createDirectories(
        made, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    return check(made); // in a sticky directory, another may have been faster
  }

  /**
   * {@return what is in a file, which is no link}
   *
   * @param file a regular file
   * @param mostBytes how long it may be
   * @throws UntrustedFileException if another user can change it
   * @throws IOException if it cannot be read, is longer, or is something else than a file
   */
  public static byte[] read(Path file, int mostBytes) throws IOException {
    Path real = check(file);
    // Before it is opened: to open a pipe waits for somebody at its other end.
    if (!Files.isRegularFile(real, LinkOption.NOFOLLOW_LINKS)) {
      if (!Files.exists(real, LinkOption.NOFOLLOW_LINKS)) {
        throw new NoSuchFileException(file.toString());
      }
      throw new IOException("not a file: path=" + file);
    }
    return readAtMost(real, mostBytes);
  }

  /**
   * {@return what is in a file, as text in UTF-8}
   *
   * @param file a regular file
   * @param mostBytes how long it may be
   * @throws UntrustedFileException if another user can change it
   * @throws IOException as {@link #read}
   */
  public static String readText(Path file, int mostBytes) throws IOException {
    return new String(read(file, mostBytes), StandardCharsets.UTF_8);
  }

  /**
   * {@return what is in a file that somebody named, whoever it belongs to; it may be a pipe}
   *
   * @param file what to read
   * @param mostBytes how long it may be
   * @throws TooLongException if it does not end before that
   * @throws NoSuchFileException if there is none
   * @throws IOException if it cannot be read
   */
  public static byte[] readAtMost(Path file, int mostBytes) throws IOException {
    if (!Files.exists(file)) {
      throw new NoSuchFileException(file.toString());
    }
    // Not by a channel: an interrupt of the caller's thread would close that.
    try (InputStream in = new FileInputStream(file.toFile())) {
      byte[] bytes = in.readNBytes(mostBytes + 1);
      if (bytes.length > mostBytes) {
        throw new TooLongException("longer than " + mostBytes + " bytes: path=" + file);
      }
      return bytes;
    }
  }

  /**
   * Puts a file in its place, whole or not at all.
   *
   * @param file its directory is there
   * @param bytes what is in it
   * @param permissions as {@code rw-r--r--}
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
   * Deletes a directory and all that is in it. No link is followed, not even one that takes the
   * place of a directory meanwhile.
   *
   * @param directory of this user or root alone; nothing is done where there is none
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
