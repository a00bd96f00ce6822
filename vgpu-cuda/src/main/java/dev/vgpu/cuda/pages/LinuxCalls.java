package dev.vgpu.cuda.pages;

import com.sun.jna.Function;
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import com.sun.jna.Pointer;
import java.util.Map;

/**
 * The system calls that Java does not have. Loading this class loads JNA.
 *
 * <p>Nothing is registered with JNA and no library is kept open: a registered class is never
 * collected, nor its class loader, and JNA has a thread as long as a library is open.
 */
final class LinuxCalls {
  private static final int FUTEX_WAKE = 1;
  private static final long FUTEX = Platform.isARM() ? 98 : 202;
  private static final Function SYSCALL = find("syscall");

  private LinuxCalls() {}

  /** From the process itself: libc is there and stays, and a search for it takes time. */
  private static Function find(String name) {
    try (NativeLibrary process =
        NativeLibrary.getInstance((String) null, Map.of(Library.OPTION_STRING_ENCODING, "UTF-8"))) {
      return Function.getFunction(process.getGlobalVariableAddress(name));
    }
  }

  /** Does nothing but see to it that this class is loaded. */
  static void load() {}

  /** Wakes every thread of every process that waits on a word of a shared mapping. */
  static void wakeAll(SharedPage page, int offset) {
    Pointer word = Native.getDirectBufferPointer(page.buffer()).share(offset);
    long ignored =
        SYSCALL.invokeLong(
            new Object[] {FUTEX, word, FUTEX_WAKE, Integer.MAX_VALUE, null, null, 0});
  }
}
