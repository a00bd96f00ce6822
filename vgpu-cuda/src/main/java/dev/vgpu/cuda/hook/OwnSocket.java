package dev.vgpu.cuda.hook;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The file of a listening socket, as it was when the socket was bound. */
final class OwnSocket {
  private final Path path;
  private final @Nullable Object key;

  OwnSocket(Path path) throws IOException {
    this.path = path;
    this.key = key(path);
  }

  /** If this seat was given up, another may already listen under the name; its socket stays. */
  void remove() throws IOException {
    Path aside = path.resolveSibling(path.getFileName() + "." + ProcessHandle.current().pid());
    Files.move(path, aside, StandardCopyOption.ATOMIC_MOVE);
    if (Objects.equals(key, key(aside))) {
      Files.delete(aside);
    } else {
      Files.move(aside, path);
    }
  }

  private static @Nullable Object key(Path file) throws IOException {
    return Files.readAttributes(file, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS)
        .fileKey();
  }
}
