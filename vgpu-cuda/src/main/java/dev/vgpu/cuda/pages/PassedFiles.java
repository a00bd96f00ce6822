package dev.vgpu.cuda.pages;

import dev.vgpu.files.JnaPlace;
import dev.vgpu.spi.UnreadFiles;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Open files that the other end of a Unix socket passes along with its messages ({@code
 * SCM_RIGHTS}). This process wants none. Whatever the kernel has to do to end such a file, it does
 * in the thread that reads the message or closes the socket: for a TCP connection with {@code
 * SO_LINGER}, that thread waits for as long as the sender likes.
 */
public final class PassedFiles {
  private static final Logger log = LoggerFactory.getLogger(PassedFiles.class);
  private static final Path OWN_FILES = Path.of("/proc/self/fd");
  private static final short AF_UNIX = 1;

  /** The start of a kernel's release, as in {@code 6.16.3-generic}. */
  private static final Pattern RELEASE = Pattern.compile("(\\d{1,4})\\.(\\d{1,4})");

  private PassedFiles() {}

  /** {@return whether the kernel may be able to refuse them: it is Linux 6.16 or later} */
  static boolean canRefuse() {
    return canRefuse(System.getProperty("os.version", ""));
  }

  static boolean canRefuse(String release) {
    Matcher numbers = RELEASE.matcher(release);
    if (!numbers.lookingAt()) {
      return true; // not known, so it is tried
    }
    int major = Integer.parseInt(numbers.group(1));
    return major > 6 || (major == 6 && Integer.parseInt(numbers.group(2)) >= 16);
  }

  /**
   * Makes the kernel refuse them for all connections that are made from now on, if it can. Loads
   * JNA, which takes 100 ms in a fresh JVM.
   *
   * @param path to which a listening socket of this process is bound, with no connection yet
   * @return what finds them before they are read, if the kernel cannot refuse them; empty if it
   *     refuses them, or if JNA cannot be loaded
   */
  public static Optional<UnreadFiles> refuse(Path path) {
    return refuses(path) ? Optional.empty() : find(path);
  }

  /** {@return what finds them, as on a kernel that cannot refuse them} */
  public static Optional<UnreadFiles> find(Path path) {
    return Optional.ofNullable(PeekedFiles.of(path));
  }

  private static boolean refuses(Path path) {
    try {
      if (canRefuse() && refuse(address(path))) {
        return true;
      }
      log.debug("the kernel is older than Linux 6.16 and lets others pass files: path={}", path);
    } catch (IOException | LinkageError | OutOfMemoryError e) {
      log.warn("others may pass files with their messages: path={}: {}", path, e.getMessage());
    }
    return false;
  }

  static byte[] address(Path path) {
    byte[] name = path.toString().getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(Short.BYTES + name.length + 1)
        .order(ByteOrder.nativeOrder())
        .putShort(AF_UNIX)
        .put(name)
        .array();
  }

  private static boolean refuse(byte[] address) throws IOException {
    JnaPlace.check(System.getenv());
    List<Integer> sockets = sockets(address);
    if (sockets.isEmpty()) {
      throw new IOException("the socket is not found");
    }
    return LinuxCalls.refuseFiles(sockets.get(0));
  }

  /** {@return this process's sockets with an address} Java does not tell the number of a file. */
  static List<Integer> sockets(byte[] address) throws IOException {
    List<Integer> sockets = new ArrayList<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(OWN_FILES)) {
      for (Path file : files) {
        int number = Integer.parseInt(file.getFileName().toString());
        if (Arrays.equals(LinuxCalls.address(number), address)) {
          sockets.add(number);
        }
      }
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
    return sockets;
  }
}
