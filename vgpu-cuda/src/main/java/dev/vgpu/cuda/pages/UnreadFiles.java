package dev.vgpu.cuda.pages;

import com.sun.jna.Memory;
import dev.vgpu.files.JnaPlace;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds the open files that programs pass along before they are read, where the kernel cannot
 * refuse them: what was only looked at stays in the socket, and the kernel ends nothing. Confined
 * to one thread at a time.
 *
 * @see PassedFiles
 */
public final class UnreadFiles {
  /** In place of a number of bytes: nothing has arrived. */
  public static final int NOTHING = -1;

  /** In place of a number of bytes: files were passed along. */
  public static final int FILES = -2;

  private static final Logger log = LoggerFactory.getLogger(UnreadFiles.class);

  /** More than a socket holds, unless root has raised the kernel's limits. */
  private static final int MOST_UNREAD_BYTES = 1 << 20;

  private final byte[] address;

  /** The sockets with that address that were there before: by number, with their cookies. */
  private Map<Integer, Long> known = new HashMap<>();

  private final Memory room = LinuxCalls.room(MOST_UNREAD_BYTES);

  private UnreadFiles(Path path) {
    this.address = PassedFiles.address(path);
  }

  /**
   * {@return what finds them; null if it cannot be told, since JNA cannot be loaded} Loads JNA.
   *
   * @param path to which a listening socket of this process is bound, with no connection yet
   */
  public static @Nullable UnreadFiles of(Path path) {
    try {
      JnaPlace.check(System.getenv());
      UnreadFiles files = new UnreadFiles(path);
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

  /**
   * {@return the connection that was just accepted} Call it after each.
   *
   * @throws IOException if it is not certain which one that is
   */
  public Connection accepted() throws IOException {
    Map<Integer, Long> now = sockets();
    Map<Integer, Long> added = new HashMap<>(now);
    added.entrySet().removeAll(known.entrySet());
    known = now;
    if (added.size() != 1) {
      throw new IOException("the connection is not found among " + added.size());
    }
    return new Connection(added.keySet().iterator().next());
  }

  /** One connection. Not used any more once its channel is closed. */
  public final class Connection {
    private final int number;

    private Connection(int number) {
      this.number = number;
    }

    /**
     * {@return how many bytes can be read with no file; 0: none will come; {@link #NOTHING}; {@link
     * #FILES}}
     *
     * @param most how many bytes to look at
     * @throws IOException if the connection is broken
     */
    public int readable(int most) throws IOException {
      return LinuxCalls.peek(number, room, Math.min(most, MOST_UNREAD_BYTES));
    }

    /**
     * {@return whether the kernel might have to end files, if it was closed now} Call it when the
     * other end cannot send any more.
     */
    public boolean mayHoldFiles() {
      try {
        int unread = LinuxCalls.peek(number, room, MOST_UNREAD_BYTES);
        return unread == FILES || unread == MOST_UNREAD_BYTES;
      } catch (IOException e) {
        return true; // not known
      }
    }
  }
}
