package dev.vgpu.cuda.pages;

import com.sun.jna.Function;
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import com.sun.jna.Pointer;
import java.util.Arrays;
import java.util.Map;

/**
 * System calls that Java does not offer. Loading this class loads JNA.
 *
 * <p>Nothing is registered with JNA and no library is kept open. A registered class is never
 * collected, nor is its class loader, and JNA keeps a thread while a library is open.
 */
final class LinuxCalls {
  private static final int FUTEX_WAKE = 1;
  private static final long FUTEX = Platform.isARM() ? 98 : 202;
  private static final int SOL_SOCKET = 1;
  private static final int SO_PASSRIGHTS = 83;
  private static final int MOST_ADDRESS_BYTES = 128;
  private static final Function SYSCALL = find("syscall");
  private static final Function GETSOCKNAME = find("getsockname");
  private static final Function SETSOCKOPT = find("setsockopt");

  private LinuxCalls() {}

  /** Looks in the process itself: libc is always loaded, and a search for it takes time. */
  private static Function find(String name) {
    try (NativeLibrary process =
        NativeLibrary.getInstance((String) null, Map.of(Library.OPTION_STRING_ENCODING, "UTF-8"))) {
      return Function.getFunction(process.getGlobalVariableAddress(name));
    }
  }

  /** Does nothing; a call makes the JVM load this class. */
  static void load() {}

  /** Wakes every thread of every process that waits on a word of a shared mapping. */
  static void wakeAll(SharedPage page, int offset) {
    Pointer word = Native.getDirectBufferPointer(page.buffer()).share(offset);
    long ignored =
        SYSCALL.invokeLong(
            new Object[] {FUTEX, word, FUTEX_WAKE, Integer.MAX_VALUE, null, null, 0});
  }

  /** {@return the address of a socket, as the kernel writes it; empty if the file is none} */
  static byte[] address(int file) {
    byte[] address = new byte[MOST_ADDRESS_BYTES];
    int[] size = {address.length};
    int error = GETSOCKNAME.invokeInt(new Object[] {file, address, size});
    return Arrays.copyOf(address, error == 0 ? Math.min(size[0], address.length) : 0);
  }

  /**
   * Makes the kernel refuse files that others pass to a Unix socket, and to those that connect to
   * it from now on.
   *
   * @return whether the kernel can: it is Linux 6.16 or later
   */
  static boolean refuseFiles(int socket) {
    return SETSOCKOPT.invokeInt(
            new Object[] {socket, SOL_SOCKET, SO_PASSRIGHTS, new int[] {0}, Integer.BYTES})
        == 0;
  }
}
