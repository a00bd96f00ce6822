package dev.vgpu.files;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Map;

/** The owner and the mode of a file. Immutable. */
record FileEntry(Path path, int owner, int group, int mode) {
  private static final int GROUP_WRITES = 0020;
  private static final int OTHERS_WRITE = 0002;
  private static final int STICKY = 01000;
  private static final int KIND = 0170000;
  private static final int DIRECTORY = 0040000;
  private static final int LINK = 0120000;
  private static final int PERMISSIONS = 07777;

  /** Does not follow a link. */
  static FileEntry of(Path path) throws IOException {
    Map<String, Object> read =
        Files.readAttributes(path, "unix:uid,gid,mode", LinkOption.NOFOLLOW_LINKS);
    return new FileEntry(path, number(read, "uid"), number(read, "gid"), number(read, "mode"));
  }

  private static int number(Map<String, Object> read, String name) throws IOException {
    if (read.get(name) instanceof Integer number) {
      return number;
    }
    throw new IOException("the file system does not tell a file's owner and mode");
  }

  boolean isLink() {
    return (mode & KIND) == LINK;
  }

  /**
   * Checks that no other user can change it.
   *
   * @param isLast whether the path ends here, rather than passing through
   */
  void check(boolean isLast) throws IOException {
    checkOwner();
    boolean isSticky = (mode & KIND) == DIRECTORY && (mode & STICKY) != 0 && !isLast;
    boolean byAll = (mode & OTHERS_WRITE) != 0;
    boolean byGroup = (mode & GROUP_WRITES) != 0 && group != owner;
    if ((byAll || byGroup) && !isSticky) {
      throw new UntrustedFileException(
          (byAll ? "every user" : "its group, gid=" + group + ",")
              + " can write to it: path="
              + path
              + " mode="
              + Integer.toOctalString(mode & PERMISSIONS)
              + "; chmod go-w it");
    }
  }

  /** Checks that no group may write to it, not even one that counts as its owner's own. */
  void checkPrivate() throws IOException {
    if ((mode & GROUP_WRITES) != 0) {
      throw new UntrustedFileException(
          "its group, gid=" + group + ", can write to it: path=" + path + "; chmod 0700 it");
    }
  }

  /** Checks that its owner is this process's user, root, or the owner of the root directory. */
  void checkOwner() throws IOException {
    int self = ProcessUser.id();
    if (owner != self && owner != 0 && owner != ProcessUser.ofRootDirectory()) {
      throw new UntrustedFileException(
          "it belongs to another user: path="
              + path
              + " uid="
              + owner
              + ", this process has uid="
              + self);
    }
  }
}
