package dev.vgpu.cuda.pages;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.GroupPrincipal;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The users that may open the files of a run directory: its owner, and its group if the group may
 * enter the directory. Immutable.
 */
public final class FileAccess {
  private final @Nullable GroupPrincipal group;

  private FileAccess(@Nullable GroupPrincipal group) {
    this.group = group;
  }

  /**
   * {@return the users that may open the files in a directory}
   *
   * @throws IOException if its rights cannot be read
   */
  public static FileAccess of(Path directory) throws IOException {
    PosixFileAttributes attributes = Files.readAttributes(directory, PosixFileAttributes.class);
    boolean shared = attributes.permissions().contains(PosixFilePermission.GROUP_EXECUTE);
    return new FileAccess(shared ? attributes.group() : null);
  }

  /** Lets those users enter another directory. */
  public void applyToDirectory(Path directory) throws IOException {
    if (group == null) {
      Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwx------"));
      return;
    }
    PosixFileAttributeView view =
        Files.getFileAttributeView(directory, PosixFileAttributeView.class);
    view.setGroup(group);
    view.setPermissions(PosixFilePermissions.fromString("rwxr-x---"));
  }

  /** Lets those users read a file, and write it too if {@code writable}. */
  public void apply(Path file, boolean writable) throws IOException {
    if (group == null) {
      Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
      return;
    }
    PosixFileAttributeView view = Files.getFileAttributeView(file, PosixFileAttributeView.class);
    view.setGroup(group);
    Set<PosixFilePermission> permissions =
        PosixFilePermissions.fromString(writable ? "rw-rw----" : "rw-r-----");
    view.setPermissions(permissions);
  }
}
