package dev.vgpu.cuda.pages;

import com.sun.jna.Memory;
import dev.vgpu.files.JnaPlace;
import dev.vgpu.spi.UnreadFiles;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Peeks at what has arrived ({@code MSG_PEEK}), where the kernel cannot refuse passed files.
 *
 * @see PassedFiles
 */
final class PeekedFiles implements UnreadFiles {
  private static final Logger log = LoggerFactory.getLogger(PeekedFiles.class);

  /** More than a socket holds, unless root has raised the kernel's limits. */
  private static final int MOST_UNREAD_BYTES = 1 << 20;

  private static final int MOST_DROPPED_BYTES = 4 << 10;

  private final byte[] address;

  /** The sockets with that address that were there before: by number, with their cookies. */
  private Map<Integer, Long> known = new HashMap<>();

  private final Memory room = LinuxCalls.room(MOST_UNREAD_BYTES);

  private PeekedFiles(Path path) {
    this.address = PassedFiles.address(path);
  }

  /**
   * {@return what finds them; null if it cannot be told, since JNA cannot be loaded} Loads JNA.
   *
   * @param path to which a listening socket of this process is bound, with no connection yet
   */
  static @Nullable PeekedFiles of(Path path) {
    try {
      JnaPlace.check(System.getenv());
      PeekedFiles files = new PeekedFiles(path);
      files.known = files.sockets();
      if (files.known.isEmpty()) {
        throw new IOException("the kernel does not tell sockets apart");
      }
      return files;
    } catch (IOException | LinkageError | OutOfMemoryError e) {
      log.warn("others may pass files with their messages: path={}: {}", path, e.getMessage());
      return null;
    }
  }

  private Map<Integer, Long> sockets() throws IOException {
    Map<Integer, Long> sockets = new HashMap<>();
    for (int number : PassedFiles.sockets(address)) {
      long cookie = LinuxCalls.cookie(number);
      if (cookie != 0) { // otherwise it was closed meanwhile
        sockets.put(number, cookie);
      }
    }
    return sockets;
  }

  @Override
  public UnreadFiles.Connection accepted() throws IOException {
    Map<Integer, Long> now = sockets();
    Map<Integer, Long> added = new HashMap<>(now);
    added.entrySet().removeAll(known.entrySet());
    known = now;
    if (added.size() != 1) {
      throw new IOException("the connection is not found among " + added.size());
    }
    return new Peeked(added.keySet().iterator().next());
  }

  private final class Peeked implements UnreadFiles.Connection {
    private final int number;

    private Peeked(int number) {
      this.number = number;
    }

    @Override
    public int readable(int most) throws IOException {
      return LinuxCalls.peek(number, room, Math.min(most, MOST_UNREAD_BYTES));
    }

    @Override
    public boolean mayHoldFiles() {
      try {
        int unread = LinuxCalls.peek(number, room, MOST_UNREAD_BYTES);
        return unread == FILES || unread == MOST_UNREAD_BYTES;
      } catch (IOException e) {
        return true; // not known
      }
    }

    @Override
    public void discard() {
      try (Memory dropped = LinuxCalls.room(MOST_DROPPED_BYTES)) {
        long bytes = 1;
        while (bytes > 0) {
          bytes = LinuxCalls.read(number, dropped, MOST_DROPPED_BYTES);
        }
      } catch (IOException e) {
        log.debug("what a broken connection contains cannot be read", e);
      }
    }
  }
}
