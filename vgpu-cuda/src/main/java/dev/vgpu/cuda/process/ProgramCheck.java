package dev.vgpu.cuda.process;

import dev.vgpu.VgpuException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * Detects, before a program is started, that a preloaded library cannot reach it. Such a program
 * would silently exceed every limit.
 */
public final class ProgramCheck {
  private static final int MOST_INTERPRETERS = 4;
  private static final int MOST_LINE_BYTES = 256;

  // elf.h
  private static final int MAGIC = 0x464c457f;
  private static final int CLASS_AT = 4;
  private static final int DATA_AT = 5;
  private static final int MACHINE_AT = 18;
  private static final int PHOFF_AT = 32;
  private static final int PHENTSIZE_AT = 54;
  private static final int PHNUM_AT = 56;
  private static final int HEADER_BYTES = 64;
  private static final int ENTRY_BYTES = 56;
  private static final int CLASS_64 = 2;
  private static final int LITTLE = 1;
  private static final int PT_INTERP = 3;
  private static final int ENTRY_OFFSET_AT = 8;
  private static final int ENTRY_SIZE_AT = 32;
  private static final int X86_64 = 62;
  private static final int AARCH64 = 183;

  private static final int SET_ID = 06000;

  private final int machine;
  private final String searchPath;

  ProgramCheck(String architecture, String searchPath) {
    this.machine = architecture.equals("aarch64") ? AARCH64 : X86_64;
    this.searchPath = searchPath;
  }

  /**
   * Checks a program for this machine.
   *
   * @throws VgpuException if it cannot be hooked; the message says why
   */
  public static void check(Path executable) {
    new ProgramCheck(
            System.getProperty("os.arch", ""),
            System.getenv().getOrDefault("PATH", "/bin:/usr/bin"))
        .run(executable);
  }

  /** Ignores a missing or invalid program: starting it fails anyway. */
  void run(Path executable) {
    Optional<Path> found = find(executable);
    for (int i = 0; i < MOST_INTERPRETERS && found.isPresent(); i++) {
      Path file = found.get();
      try {
        found = interpreter(file);
        if (found.isEmpty()) {
          checkBinary(file);
        }
      } catch (IOException e) {
        return;
      }
    }
  }

  private Optional<Path> find(Path program) {
    if (program.getNameCount() != 1 || program.isAbsolute() || program.startsWith(".")) {
      return Files.isRegularFile(program) ? Optional.of(program) : Optional.empty();
    }
    for (String directory : searchPath.split(":", -1)) {
      Path file = Path.of(directory.isEmpty() ? "." : directory).resolve(program);
      if (Files.isRegularFile(file) && Files.isExecutable(file)) {
        return Optional.of(file);
      }
    }
    return Optional.empty();
  }

  /** {@return the interpreter that a script's first line names; empty if the file is no script} */
  private Optional<Path> interpreter(Path file) throws IOException {
    byte[] start;
    try (InputStream in = Files.newInputStream(file)) {
      start = in.readNBytes(MOST_LINE_BYTES);
    }
    String line = new String(start, StandardCharsets.UTF_8).lines().findFirst().orElse("");
    if (!line.startsWith("#!")) {
      return Optional.empty();
    }
    List<String> words = List.of(line.substring(2).strip().split("\\s+", -1));
    Path named = Path.of(words.get(0));
    if (named.endsWith("env")) {
      for (String word : words.subList(1, words.size())) {
        if (!word.startsWith("-") && word.indexOf('=') < 0) {
          return find(Path.of(word));
        }
      }
    }
    return find(named);
  }

  private void checkBinary(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file)) {
      ByteBuffer header = read(channel, 0, HEADER_BYTES);
      if (header.limit() < HEADER_BYTES || header.getInt(0) != MAGIC) {
        return;
      }
      if (header.get(CLASS_AT) != CLASS_64 || header.get(DATA_AT) != LITTLE) {
        throw refused(file, "it is a 32-bit program, and the hook is 64-bit");
      }
      if (header.getShort(MACHINE_AT) != machine) {
        throw refused(file, "it is a program for another kind of machine");
      }
      Optional<String> loader = loader(channel, header);
      // The loader can be run as a program; it then loads another one.
      boolean isLoader = String.valueOf(file.getFileName()).startsWith("ld-");
      if (loader.isEmpty() && !isLoader) {
        throw refused(
            file, "it is statically linked, so no library can be preloaded; link it dynamically");
      }
      if (loader.orElse("").contains("musl")) {
        throw refused(file, "it is made for the musl C library, and the hook needs glibc");
      }
    }
    int mode = (Integer) Files.getAttribute(file, "unix:mode");
    if ((mode & SET_ID) != 0 && !isOwn(file)) {
      throw refused(
          file,
          "it is a set-user-ID or set-group-ID program, for which preloading is switched off");
    }
  }

  /** {@return whether the program runs as the current user and group anyway} */
  private static boolean isOwn(Path file) throws IOException {
    Path self = Path.of("/proc/self");
    return Files.getAttribute(file, "unix:uid").equals(Files.getAttribute(self, "unix:uid"))
        && Files.getAttribute(file, "unix:gid").equals(Files.getAttribute(self, "unix:gid"));
  }

  private static Optional<String> loader(FileChannel channel, ByteBuffer header)
      throws IOException {
    int entries = Short.toUnsignedInt(header.getShort(PHNUM_AT));
    int size = Short.toUnsignedInt(header.getShort(PHENTSIZE_AT));
    long at = header.getLong(PHOFF_AT);
    for (int i = 0; i < entries && at >= 0; i++) {
      ByteBuffer entry = read(channel, at + (long) i * size, ENTRY_BYTES);
      if (entry.limit() == ENTRY_BYTES && entry.getInt(0) == PT_INTERP) {
        long length = Math.min(MOST_LINE_BYTES, entry.getLong(ENTRY_SIZE_AT));
        ByteBuffer name = read(channel, entry.getLong(ENTRY_OFFSET_AT), (int) Math.max(0, length));
        return Optional.of(StandardCharsets.ISO_8859_1.decode(name).toString());
      }
    }
    return Optional.empty();
  }

  private static ByteBuffer read(FileChannel channel, long at, int bytes) throws IOException {
    ByteBuffer buffer = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    long from = Math.max(0, at);
    while (buffer.hasRemaining()) {
      int read = channel.read(buffer, from + buffer.position());
      if (read < 0) {
        break;
      }
    }
    return buffer.flip();
  }

  private static VgpuException refused(Path file, String reason) {
    return new VgpuException("cannot put a program under a virtual GPU: " + reason + ": " + file);
  }
}
