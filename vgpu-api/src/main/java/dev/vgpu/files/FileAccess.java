package dev.vgpu.files;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.GroupPrincipal;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The users who may open the files of a directory besides its owner. Only root's files are open to
 * others. There are two kinds of directories:
 *
 * <ul>
 *   <li>A run directory that root has opened to a group, with mode 0750. Members of the group read
 *       its files, and reach its sockets.
 *   <li>The directory of a member's lease. It contains the link {@link #MEMBER}, which leads
 *       nowhere and belongs to the member. The member writes some of its files; others of the
 *       member's own group only read them.
 * </ul>
 *
 * <p>Immutable.
 */
public final class FileAccess {
  /** The link whose owner is the member that a lease's directory is open to. */
  public static final String MEMBER = "member";

  private static final FileAccess OWNER_ONLY = new FileAccess(null, null);
  private static final int GROUP_ENTERS = 0010;
  private static final int GROUP_WRITES = 0020;

  private final @Nullable UserPrincipal member;
  private final @Nullable GroupPrincipal group;

  private FileAccess(@Nullable UserPrincipal member, @Nullable GroupPrincipal group) {
    this.member = member;
    this.group = group;
  }

  /**
   * {@return the users who may open the files in a directory}
   *
   * @param directory exists
   * @throws IOException if its rights cannot be read
   */
  public static FileAccess of(Path directory) throws IOException {
    FileEntry entry = FileEntry.of(directory);
    if (entry.owner() != 0) {
      return OWNER_ONLY; // another user than root could not give a file away
    }
    try {
      PosixFileAttributes marker = attributes(directory.resolve(MEMBER));
      return new FileAccess(marker.owner(), marker.group());
    } catch (NoSuchFileException e) {
      return isForGroup(entry) ? new FileAccess(null, attributes(directory).group()) : OWNER_ONLY;
    }
  }

  private static PosixFileAttributes attributes(Path file) throws IOException {
    return Files.readAttributes(file, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
  }

  private static boolean isForGroup(FileEntry entry) {
    return entry.owner() == 0
        && entry.group() != 0
        && (entry.mode() & (GROUP_ENTERS | GROUP_WRITES)) == GROUP_ENTERS;
  }

  /**
   * {@return whether root has opened a run directory to a group}
   *
   * @param directory need not exist; a link is not followed
   */
  public static boolean isForGroup(Path directory) {
    try {
      return isForGroup(FileEntry.of(directory));
    } catch (IOException | UnsupportedOperationException e) { // the latter: no Unix
      return false;
    }
  }

  /**
   * {@return whether root has opened a run directory to a group that this process is in; true for
   * root itself}
   *
   * @param directory need not exist; a link is not followed
   */
  public static boolean isForOurGroup(Path directory) {
    return isForGroup(directory) && Files.isExecutable(directory);
  }

  /** {@return the member that the directory is open to; empty if it is no member's} */
  public Optional<UserPrincipal> member() {
    return Optional.ofNullable(member);
  }

  /**
   * Lets those users enter another directory.
   *
   * @param directory belongs to this process's user
   * @throws IOException if its rights cannot be changed
   */
  public void applyToDirectory(Path directory) throws IOException {
    set(directory, null, group == null ? "rwx------" : "rwxr-x---");
  }

  /**
   * Lets those users open a file.
   *
   * @param file belongs to this process's user, and is no link
   * @param writable whether the member, or the group if there is no member, may write to it
   * @throws IOException if its rights cannot be changed
   */
  public void apply(Path file, boolean writable) throws IOException {
    if (group == null || (writable && member != null)) {
      set(file, member, "rw-------");
    } else {
      set(file, null, writable ? "rw-rw----" : "rw-r-----");
    }
  }

  private void set(Path file, @Nullable UserPrincipal owner, String permissions)
      throws IOException {
    PosixFileAttributeView view =
        Files.getFileAttributeView(file, PosixFileAttributeView.class, LinkOption.NOFOLLOW_LINKS);
    if (group != null) {
      view.setGroup(group);
    }
    // A link cannot be given a mode; the caller has just created the file.
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(permissions));
    if (owner != null) {
      view.setOwner(owner); // last: the owner could replace the mode
    }
  }
}
