package dev.vgpu.cuda;

import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import com.sun.jna.Pointer;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The system calls that Java does not have. Loading this class loads JNA. */
final class LinuxCalls {
  private static final int FUTEX_WAKE = 1;
  private static final long FUTEX = Platform.isARM() ? 98 : 202;

  static {
    // From the process itself: libc is there, and a search for it takes time.
    Native.register(
        LinuxCalls.class,
        NativeLibrary.getInstance((String) null, Map.of(Library.OPTION_STRING_ENCODING, "UTF-8")));
  }

  private LinuxCalls() {}

  /** Does nothing but see to it that this class is loaded. */
  static void load() {}

  /** Wakes every thread of every process that waits on a word of a shared mapping. */
  static void wakeAll(SharedPage page, int offset) {
    Pointer word = Native.getDirectBufferPointer(page.buffer()).share(offset);
    syscall(FUTEX, word, FUTEX_WAKE, Integer.MAX_VALUE, null, null, 0);
  }

  private static native long syscall(
      long number,
      Pointer word,
      int operation,
      int value,
      @Nullable Pointer timeout,
      @Nullable Pointer word2,
      int value3);
}
