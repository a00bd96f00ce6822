package dev.vgpu.cuda.pages;

import com.sun.jna.Function;
import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import dev.vgpu.spi.UnreadFiles;
import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import org.jspecify.annotations.Nullable;

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
  private static final int SO_COOKIE = 57;
  private static final int SO_PASSRIGHTS = 83;
  private static final int MSG_PEEK = 2;
  private static final int MSG_DONTWAIT = 0x40;
  private static final int MSG_CTRUNC = 8;
  private static final int EINTR = 4;
  private static final int EAGAIN = 11;

  /** The layout of {@code struct msghdr}, which is followed by a {@code struct iovec} here. */
  private static final int MESSAGE_PARTS = 16;

  private static final int MESSAGE_PART_COUNT = 24;
  private static final int MESSAGE_FLAGS = 48;
  private static final int MESSAGE_BYTES = 56;
  private static final int PART_BYTES = 16;
  private static final int MOST_ADDRESS_BYTES = 128;
  private static final long GETTID = Platform.isARM() ? 178 : 186;
  private static final long SET_ROBUST_LIST = Platform.isARM() ? 99 : 273;
  private static final long GET_ROBUST_LIST = Platform.isARM() ? 100 : 274;

  /** The size of {@code struct robust_list_head}. */
  static final long ROBUST_HEAD_BYTES = 24;

  private static final int PROT_READ_WRITE = 3;
  private static final int MAP_PRIVATE_ANONYMOUS = 0x22;
  private static final int MREMAP_MAYMOVE_FIXED = 3;
  private static final Function SYSCALL = find("syscall");
  private static final Function GETSOCKNAME = find("getsockname");
  private static final Function GETSOCKOPT = find("getsockopt");
  private static final Function SETSOCKOPT = find("setsockopt");
  private static final Function RECVMSG = find("recvmsg");
  private static final Function MMAP = find("mmap");
  private static final Function MREMAP = find("mremap");
  private static final Function MUNMAP = find("munmap");

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

  /** {@return the calling thread's id in its own namespace} */
  static int threadId() {
    return (int) SYSCALL.invokeLong(new Object[] {GETTID});
  }

  /**
   * {@return the calling thread's list of words that the kernel changes when the thread ends: its
   * {@code struct robust_list_head}; null: it has none}
   */
  static @Nullable Pointer robustList() {
    PointerByReference head = new PointerByReference();
    LongByReference bytes = new LongByReference();
    long error = SYSCALL.invokeLong(new Object[] {GET_ROBUST_LIST, 0L, head, bytes});
    return error == 0 ? head.getValue() : null;
  }

  /** Sets the calling thread's list. */
  static void robustList(@Nullable Pointer head) {
    long ignored = SYSCALL.invokeLong(new Object[] {SET_ROBUST_LIST, head, ROBUST_HEAD_BYTES});
  }

  /**
   * Maps a shared page a second time, behind private memory of {@code step} bytes.
   *
   * @return where that private memory begins; null: there is no room, or the kernel cannot do it
   */
  static @Nullable Pointer mapAgain(SharedPage page, long step) {
    Pointer at =
        MMAP.invokePointer(
            new Object[] {null, 2 * step, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0L});
    if (at == null || Pointer.nativeValue(at) == -1) {
      return null;
    }
    // An old size of 0: the old mapping stays. See mremap(2).
    Pointer from = Native.getDirectBufferPointer(page.buffer());
    Pointer to = at.share(step);
    long bytes = page.buffer().capacity();
    Pointer mapped = MREMAP.invokePointer(new Object[] {from, 0L, bytes, MREMAP_MAYMOVE_FIXED, to});
    if (!to.equals(mapped)) {
      unmap(at, 2 * step);
      return null;
    }
    return at;
  }

  /** Ends mappings. */
  static void unmap(Pointer at, long bytes) {
    int ignored = MUNMAP.invokeInt(new Object[] {at, bytes});
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

  /**
   * {@return a number that no other socket has had since the machine started; 0 if none is told}
   */
  static long cookie(int socket) {
    long[] cookie = {0};
    int[] size = {Long.BYTES};
    int error = GETSOCKOPT.invokeInt(new Object[] {socket, SOL_SOCKET, SO_COOKIE, cookie, size});
    return error == 0 ? cookie[0] : 0;
  }

  /** {@return room for {@link #peek} and {@link #read}} */
  static Memory room(int bytes) {
    Memory room = new Memory(MESSAGE_BYTES + PART_BYTES + (long) bytes);
    room.clear(MESSAGE_BYTES + PART_BYTES);
    room.setPointer(MESSAGE_PARTS, room.share(MESSAGE_BYTES));
    room.setLong(MESSAGE_PART_COUNT, 1);
    room.setPointer(MESSAGE_BYTES, room.share(MESSAGE_BYTES + PART_BYTES));
    return room;
  }

  /**
   * Looks at what has arrived at a socket and leaves it there, with the files that were passed
   * along: so the kernel ends none of them.
   *
   * @return how many bytes have arrived, {@code most} at most; 0: none, and none will come; {@link
   *     UnreadFiles#NOTHING}; {@link UnreadFiles#FILES}: files were passed along
   * @throws IOException if the connection is broken
   */
  static int peek(int socket, Memory room, int most) throws IOException {
    long bytes = receive(socket, room, most, MSG_PEEK | MSG_DONTWAIT);
    if (bytes < 0) {
      return UnreadFiles.NOTHING;
    }
    boolean passed = (room.getInt(MESSAGE_FLAGS) & MSG_CTRUNC) != 0;
    return passed ? UnreadFiles.FILES : (int) bytes;
  }

  /**
   * Reads what has arrived at a socket. The kernel ends the files that were passed along.
   *
   * @return how many bytes were read; 0: none, and none will come; -1: none
   * @throws IOException if the connection is broken
   */
  static long read(int socket, Memory room, int most) throws IOException {
    return receive(socket, room, most, MSG_DONTWAIT);
  }

  private static long receive(int socket, Memory room, int most, int flags) throws IOException {
    room.setLong(MESSAGE_BYTES + Long.BYTES, most);
    room.setInt(MESSAGE_FLAGS, 0);
    long bytes = RECVMSG.invokeLong(new Object[] {socket, room, flags});
    int error = bytes < 0 ? Native.getLastError() : 0;
    if (error != 0 && error != EAGAIN && error != EINTR) {
      throw new IOException("errno " + error);
    }
    return bytes;
  }
}
