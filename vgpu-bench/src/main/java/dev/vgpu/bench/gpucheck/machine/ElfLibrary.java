package dev.vgpu.bench.gpucheck.machine;

import static java.util.Collections.unmodifiableSet;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * The contents of a shared library's dynamic section. Immutable.
 *
 * @param soname its own name; empty if it has none
 * @param needed the libraries that it is linked with
 * @param isSymbolic whether its own calls bind to itself
 * @param imports the names of the functions and variables that it imports
 */
public record ElfLibrary(
    String soname, List<String> needed, boolean isSymbolic, Set<String> imports) {
  // Elf64_Ehdr, Elf64_Shdr, Elf64_Dyn and Elf64_Sym, as in elf.h.
  private static final int MAGIC = 0x464c457f;
  private static final int HEADER_BYTES = 64;
  private static final int SECTIONS_AT = 40;
  private static final int SECTION_COUNT_AT = 60;
  private static final int SECTION_BYTES = 64;
  private static final int TYPE_AT = 4;
  private static final int OFFSET_AT = 24;
  private static final int SIZE_AT = 32;
  private static final int LINK_AT = 40;
  private static final int SHT_DYNAMIC = 6;
  private static final int SHT_DYNSYM = 11;
  private static final int ENTRY_BYTES = 16;
  private static final int DT_NEEDED = 1;
  private static final int DT_SONAME = 14;
  private static final int DT_SYMBOLIC = 16;
  private static final int DT_FLAGS = 30;
  private static final int DF_SYMBOLIC = 2;
  private static final int SYMBOL_BYTES = 24;
  private static final int SYMBOL_SECTION_AT = 6;
  private static final int SHN_UNDEF = 0;
  private static final long MOST_BYTES = 64L << 20;

  /** A part of the file, with its string table. */
  private record Section(ByteBuffer bytes, ByteBuffer strings) {
    String text(long at) {
      StringBuilder text = new StringBuilder();
      for (int i = Math.toIntExact(at); strings.get(i) != 0; i++) {
        text.append((char) (strings.get(i) & 0xff));
      }
      return text.toString();
    }
  }

  /**
   * Reads a library.
   *
   * @throws IOException if it cannot be read, or is not a 64-bit library
   */
  public static ElfLibrary read(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file)) {
      ByteBuffer header = part(channel, 0, HEADER_BYTES);
      if (header.getInt(0) != MAGIC) {
        throw new IOException("no ELF file: " + file);
      }
      ByteBuffer sections =
          part(
              channel,
              header.getLong(SECTIONS_AT),
              (long) header.getShort(SECTION_COUNT_AT) * SECTION_BYTES);
      return of(section(channel, sections, SHT_DYNAMIC), section(channel, sections, SHT_DYNSYM));
    } catch (IndexOutOfBoundsException | ArithmeticException e) {
      throw new IOException("a damaged ELF file: " + file, e);
    }
  }

  private static ElfLibrary of(Section dynamic, Section symbols) {
    String soname = "";
    boolean isSymbolic = false;
    List<String> needed = new ArrayList<>();
    for (int at = 0; at + ENTRY_BYTES <= dynamic.bytes.limit(); at += ENTRY_BYTES) {
      long tag = dynamic.bytes.getLong(at);
      long value = dynamic.bytes.getLong(at + 8);
      if (tag == DT_NEEDED) {
        needed.add(dynamic.text(value));
      } else if (tag == DT_SONAME) {
        soname = dynamic.text(value);
      } else if (tag == DT_SYMBOLIC || (tag == DT_FLAGS && (value & DF_SYMBOLIC) != 0)) {
        isSymbolic = true;
      }
    }
    Set<String> imports = new TreeSet<>();
    for (int at = 0; at + SYMBOL_BYTES <= symbols.bytes.limit(); at += SYMBOL_BYTES) {
      if (symbols.bytes.getShort(at + SYMBOL_SECTION_AT) == SHN_UNDEF) {
        imports.add(symbols.text(symbols.bytes.getInt(at)));
      }
    }
    imports.remove("");
    return new ElfLibrary(soname, List.copyOf(needed), isSymbolic, unmodifiableSet(imports));
  }

  /** The first section of a type. */
  private static Section section(FileChannel channel, ByteBuffer all, int type) throws IOException {
    for (int at = 0; at + SECTION_BYTES <= all.limit(); at += SECTION_BYTES) {
      if (all.getInt(at + TYPE_AT) == type) {
        int link = all.getInt(at + LINK_AT) * SECTION_BYTES;
        return new Section(content(channel, all, at), content(channel, all, link));
      }
    }
    throw new IOException("it has no section of type " + type);
  }

  private static ByteBuffer content(FileChannel channel, ByteBuffer all, int at)
      throws IOException {
    return part(channel, all.getLong(at + OFFSET_AT), all.getLong(at + SIZE_AT));
  }

  private static ByteBuffer part(FileChannel channel, long at, long bytes) throws IOException {
    if (at < 0 || bytes < 0 || bytes > MOST_BYTES || at > channel.size() - bytes) {
      throw new IOException("a damaged ELF file");
    }
    ByteBuffer buffer = ByteBuffer.allocate((int) bytes).order(ByteOrder.LITTLE_ENDIAN);
    while (buffer.hasRemaining() && channel.read(buffer, at + buffer.position()) > 0) {
      // until the buffer is full
    }
    return buffer.flip();
  }
}
