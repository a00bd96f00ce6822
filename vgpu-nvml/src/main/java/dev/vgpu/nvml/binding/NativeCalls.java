package dev.vgpu.nvml.binding;

import dev.vgpu.files.JnaPlace;
import dev.vgpu.files.NativeResource;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.files.UntrustedFileException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Calls functions of a library that is found at run time. A function may take up to six arguments,
 * each an integer or an address. Safe for use by several threads.
 *
 * <p>Uses a small native library from this jar. Loading JNA takes about 100 ms in a fresh JVM, and
 * a pool must open within 50 ms. JNA is used only if the jar has no such library for the machine,
 * or it cannot be unpacked.
 */
public final class NativeCalls {
  private static final String NAME = "libvgpu_calls.so";
  private static final int TEXT_BYTES = 1_024;
  private static final int MOST_ARGUMENTS = 6;

  /** Calls by JNA; null if the small library is used. */
  private static volatile @Nullable JnaCalls jna;

  private static boolean loaded;

  private NativeCalls() {}

  /**
   * Loads the small library, or JNA. The library's file is deleted after loading.
   *
   * @param directories where it may be unpacked; the first that works is used
   * @throws IOException if neither can be loaded
   */
  public static synchronized void load(Iterable<Path> directories) throws IOException {
    if (loaded) {
      return;
    }
    try {
      loadOwn(directories);
    } catch (IOException e) {
      try {
        JnaPlace.check(System.getenv());
        jna = new JnaCalls();
      } catch (LinkageError | UntrustedFileException none) {
        e.addSuppressed(none);
        throw e;
      }
    }
    loaded = true;
  }

  private static void loadOwn(Iterable<Path> directories) throws IOException {
    String resource = NativeResource.of(NAME);
    byte[] library;
    try (InputStream in = NativeCalls.class.getResourceAsStream(resource)) {
      if (in == null) {
        throw new IOException("the jar holds nothing for this machine: " + resource);
      }
      library = in.readAllBytes();
    }
    IOException failure = new IOException("no directory to unpack a library to");
    for (Path directory : directories) {
      try {
        load(directory, library);
        return;
      } catch (IOException | UnsatisfiedLinkError e) {
        failure = new IOException("cannot load from " + directory + ": " + e.getMessage(), e);
      }
    }
    throw failure;
  }

  private static void load(Path directory, byte[] library) throws IOException {
    // Not createTempFile, which needs random numbers, nor ProcessHandle, which starts threads: each
    // takes longer than all the rest.
    Path process = Files.readSymbolicLink(Path.of("/proc/self"));
    // One file per copy of this class: a JVM refuses a file that another class loader has loaded.
    String copy = Integer.toHexString(System.identityHashCode(NativeCalls.class));
    // No other user can replace the file before it is loaded.
    Path file = TrustedFiles.check(directory.resolve("." + process + "-" + copy + "-" + NAME));
    Files.deleteIfExists(file);
    Set<OpenOption> fresh = Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    try (var channel =
        Files.newByteChannel(
            file,
            fresh,
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")))) {
      ByteBuffer bytes = ByteBuffer.wrap(library);
      while (bytes.hasRemaining()) {
        channel.write(bytes);
      }
      System.load(file.toString());
    } finally {
      Files.deleteIfExists(file);
    }
  }

  /**
   * {@return zeroed memory for native code}
   *
   * @param bytes its size
   */
  public static ByteBuffer memory(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  /**
   * {@return memory with a zero-terminated text}
   *
   * @param text the text
   */
  public static ByteBuffer memory(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    return memory(bytes.length + 1).put(0, bytes);
  }

  /**
   * {@return the zero-terminated text at the start of memory}
   *
   * @param memory holds the text
   */
  public static String text(ByteBuffer memory) {
    int end = 0;
    while (end < memory.capacity() && memory.get(end) != 0) {
      end++;
    }
    byte[] bytes = new byte[end];
    memory.get(0, bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  /**
   * {@return the handle of a library, which stays loaded}
   *
   * @param file the library
   * @throws UnsatisfiedLinkError if it cannot be loaded; the message is the loader's
   */
  public static long open(Path file) {
    JnaCalls byJna = jna;
    if (byJna != null) {
      return byJna.open(file);
    }
    ByteBuffer reason = memory(TEXT_BYTES);
    long library = open(memory(file.toString()), reason, TEXT_BYTES);
    if (library == 0) {
      throw new UnsatisfiedLinkError(text(reason));
    }
    return library;
  }

  /**
   * {@return a function's address; 0 if the library has no such function}
   *
   * @param library an open library
   * @param name the function's
   */
  public static long symbol(long library, String name) {
    JnaCalls byJna = jna;
    return byJna != null ? byJna.symbol(library, name) : symbol(library, memory(name));
  }

  /**
   * {@return the text at an address; empty if the address is 0}
   *
   * @param address where the text begins
   */
  public static String textAt(long address) {
    JnaCalls byJna = jna;
    if (byJna != null) {
      return byJna.textAt(address);
    }
    ByteBuffer text = memory(TEXT_BYTES);
    text(address, text, TEXT_BYTES);
    return text(text);
  }

  /**
   * {@return a function's result}
   *
   * @param function its address
   * @param arguments at most six; a number is passed as it is, and memory by its address
   */
  public static long call(long function, Object... arguments) {
    JnaCalls byJna = jna;
    if (byJna != null) {
      return byJna.call(function, arguments);
    }
    long[] values = new long[MOST_ARGUMENTS];
    for (int i = 0; i < arguments.length; i++) {
      values[i] =
          arguments[i] instanceof ByteBuffer memory
              ? address(memory)
              : ((Number) arguments[i]).longValue();
    }
    try {
      return call(function, values[0], values[1], values[2], values[3], values[4], values[5]);
    } finally {
      Reference.reachabilityFence(arguments);
    }
  }

  private static native long address(ByteBuffer memory);

  private static native long call(long function, long a, long b, long c, long d, long e, long f);

  private static native long open(ByteBuffer path, ByteBuffer reason, int size);

  private static native long symbol(long library, ByteBuffer name);

  private static native void text(long from, ByteBuffer into, int size);
}
