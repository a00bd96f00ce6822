package dev.vgpu.core.disk;

import dev.vgpu.VgpuException;
import dev.vgpu.files.FileAccess;
import dev.vgpu.files.RunPlace;
import dev.vgpu.files.RunPlace.Origin;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.files.UntrustedFileException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * The directory through which the processes of a node find each other. Immutable.
 *
 * @param path an absolute path
 * @param origin how it was chosen
 */
public record RunDirectory(Path path, Origin origin) {
  /** The longest path of a Unix socket, in bytes. */
  public static final int MOST_SOCKET_PATH_BYTES = 107;

  private static final long LEAST_FREE_BYTES = 256 << 10;
  private static final Set<PosixFilePermission> OWNER_ONLY =
      PosixFilePermissions.fromString("rwx------");

  /** Members of the group enter the directories in it, but do not list them. */
  private static final Set<PosixFilePermission> PASSED_THROUGH =
      PosixFilePermissions.fromString("rwx--x--x");

  /** File systems on which locks do not hold, or not reliably, between machines. */
  private static final List<String> REMOTE =
      List.of("nfs", "cifs", "smb", "afs", "fuse.sshfs", "ceph", "lustre", "gpfs", "glusterfs");

  /**
   * {@return the run directory of a pool}
   *
   * @param option the directory that the pool's options name
   * @param environment the environment of this process
   */
  public static RunDirectory resolve(Optional<Path> option, Map<String, String> environment) {
    RunPlace place = option.map(RunPlace::named).orElseGet(() -> RunPlace.of(environment));
    return new RunDirectory(place.path(), place.origin());
  }

  /** {@return the lock file of the seat} */
  public Path lock() {
    return path.resolve("seat.lock");
  }

  /** {@return the socket on which the seat's holder listens for other JVMs} */
  public Path socket() {
    return path.resolve("seat.sock");
  }

  /** {@return the directory of the leases} */
  public Path leases() {
    return path.resolve("leases");
  }

  /** {@return the directory of the usage records} */
  public Path usage() {
    return path.resolve("usage");
  }

  /**
   * Creates the directory if it is missing, and checks that it can be used. It may be on a full
   * disk: a client writes nothing, and a seat can serve the leases that exist.
   *
   * @throws VgpuException if the directory cannot be used; the message says why, and what to do
   */
  public void prepare() {
    int bytes = socket().toString().getBytes(StandardCharsets.UTF_8).length;
    if (bytes > MOST_SOCKET_PATH_BYTES) {
      throw unusable(
          "its path is too long for a socket's address: "
              + bytes
              + " bytes with seat.sock, "
              + MOST_SOCKET_PATH_BYTES
              + " at most; name a shorter one");
    }
    try {
      if (!Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
        make();
      }
      check();
      if (isOfRoot()) {
        return;
      }
      if (!Files.isDirectory(leases())) {
        make(leases());
      }
      if (FileAccess.isForGroup(path)) {
        Files.setPosixFilePermissions(leases(), PASSED_THROUGH);
      }
    } catch (IOException e) {
      throw new VgpuException(message(e.toString()), e);
    }
  }

  /**
   * {@return whether the directory is root's, and this process is another user's} Such a process
   * can only be a client of the seat.
   */
  public boolean isOfRoot() {
    return RunPlace.isOfRoot(path);
  }

  private void make() throws IOException {
    Path parent = path.getParent();
    if (origin == Origin.NAMED && parent != null) {
      Files.createDirectories(parent);
    }
    make(path);
  }

  private static void make(Path directory) throws IOException {
    try {
      Files.createDirectory(directory, PosixFilePermissions.asFileAttribute(OWNER_ONLY));
    } catch (java.nio.file.FileAlreadyExistsException e) {
      if (!Files.isDirectory(directory)) {
        throw e; // otherwise another process has just created it
      }
    }
  }

  private void check() throws IOException {
    if (!Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
      throw unusable("it is not a directory (a symbolic link is not followed)");
    }
    boolean isOfRoot = isOfRoot();
    try {
      if (isOfRoot) {
        Path ignored = TrustedFiles.check(path);
      } else {
        TrustedFiles.checkPrivate(path);
      }
    } catch (UntrustedFileException e) {
      throw unusable(
          e.getMessage()
              + "; name a directory of your own: every process that may write to it could take the"
              + " seat of all. To serve a group, root opens a directory to it with mode 0750");
    }
    if (isOfRoot && !FileAccess.isForOurGroup(path)) {
      throw unusable(
          "it is root's, and not open to a group that this process is in; become a member of its"
              + " group, or name a directory of your own");
    }
    if (!isOfRoot && !Files.isWritable(path)) {
      throw unusable("it is not writable for this process");
    }
    String type = fileSystemType();
    for (String remote : REMOTE) {
      if (type.startsWith(remote)) {
        throw unusable(
            "it is on a file system of the network ("
                + type
                + "), where locks do not hold;"
                + " name one on this machine");
      }
    }
  }

  /**
   * Checks that there is room for a seat's files. If there are leases already, checks nothing.
   *
   * @throws VgpuException if there is no room
   */
  public void checkSpace() {
    if (hasLeases()) {
      return;
    }
    long usableBytes = path.toFile().getUsableSpace();
    if (usableBytes < LEAST_FREE_BYTES) {
      throw unusable(
          "its file system is full: usableBytes=" + usableBytes + " needed=" + LEAST_FREE_BYTES);
    }
  }

  private boolean hasLeases() {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(leases())) {
      for (Path file : files) {
        if (Files.isDirectory(file, LinkOption.NOFOLLOW_LINKS)) {
          return true;
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      return false;
    }
    return false;
  }

  /** Empty if unknown: a chroot whose root is not a mount point has no entry. */
  private String fileSystemType() {
    try {
      return Files.getFileStore(path).type().toLowerCase(Locale.ROOT);
    } catch (IOException e) {
      return "";
    }
  }

  private VgpuException unusable(String why) {
    return new VgpuException(message(why));
  }

  private String message(String why) {
    return "the run directory cannot be used: path="
        + path
        + ": "
        + why
        + " (it is set by GpuPoolOptions.runDirectory, $VGPU_RUN_DIR, $XDG_RUNTIME_DIR)";
  }
}
