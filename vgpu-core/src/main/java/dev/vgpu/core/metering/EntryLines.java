package dev.vgpu.core.metering;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.io.InputStream;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * Records as lines: {@code #}, a checksum, a blank, the values, a newline. No value contains {@code
 * #} or a newline, so the next record is found after any damage.
 */
final class EntryLines {
  private static final char MARK = '#';
  private static final int CHECKSUM_DIGITS = 8;
  private static final String VERSION = "3";

  /** Without the time by the clock that cannot be set, which is the last value of a line. */
  private static final String SECOND_VERSION = "2";

  /** Without copy time, too. */
  private static final String FIRST_VERSION = "1";

  private static final int FIRST_COUNTERS = 6;
  private static final int COUNTERS = 7;
  private static final int MOST_SHOWN = 60;
  private static final int BLOCK_BYTES = 64 << 10;
  private static final int MOST_LINE_BYTES = 256 << 10;
  private static final int FIRST_COUNTER = 7;
  private static final HexFormat HEX = HexFormat.of();

  private EntryLines() {}

  /** Receives what cannot be read. */
  interface Damage {
    /**
     * Reports bytes that are not a record.
     *
     * @param line the line number, from 1
     * @param text the content, truncated
     */
    void found(int line, String text);
  }

  static String line(UsageEntry entry) {
    StringBuilder text = new StringBuilder(200).append(VERSION);
    for (String word : List.of(entry.id(), entry.name(), entry.gpus())) {
      text.append(' ').append(URLEncoder.encode(word, StandardCharsets.UTF_8));
    }
    text.append(' ').append(entry.startMs()).append(' ').append(entry.atMs());
    text.append(entry.closed() ? " 1" : " 0");
    append(text, entry.grown());
    append(text, entry.total());
    append(text, entry.raw());
    text.append(' ').append(entry.atNs());
    return MARK + checksum(text) + ' ' + text + '\n';
  }

  private static void append(StringBuilder text, Counters counters) {
    text.append(' ').append(counters.gpuNs()).append(' ').append(counters.byteSeconds());
    text.append(' ').append(counters.calls()).append(' ').append(counters.launches());
    text.append(' ').append(counters.preemptions()).append(' ').append(counters.denied());
    text.append(' ').append(counters.copyNs());
  }

  private static String checksum(CharSequence values) {
    CRC32C checksum = new CRC32C();
    checksum.update(values.toString().getBytes(ISO_8859_1));
    return HEX.toHexDigits((int) checksum.getValue());
  }

  /**
   * Reads all records of a file, of which it holds one line at a time. Of a line that is longer
   * than any record, only the beginning is looked at.
   *
   * @param most the file's size: a device in its place may have no end
   * @return how many bytes belong to complete lines; what follows was not written completely
   */
  static long read(InputStream in, long most, Consumer<UsageEntry> to, Damage damage)
      throws IOException {
    byte[] block = new byte[BLOCK_BYTES];
    StringBuilder line = new StringBuilder();
    long whole = 0;
    long before = 0;
    int number = 0;
    while (before < most) {
      int length = in.read(block, 0, (int) Math.min(block.length, most - before));
      if (length < 0) {
        break;
      }
      int begin = 0;
      for (int i = 0; i < length; i++) {
        if (block[i] == '\n') {
          append(line, block, begin, i);
          readLine(line.toString(), ++number, to, damage);
          line.setLength(0);
          begin = i + 1;
          whole = before + begin;
        }
      }
      append(line, block, begin, length);
      before += length;
    }
    return whole;
  }

  private static void append(StringBuilder line, byte[] block, int begin, int end) {
    int room = Math.min(end - begin, MOST_LINE_BYTES - line.length());
    line.append(new String(block, begin, room, ISO_8859_1));
  }

  /** Reads a line, or the remains of one or several. */
  private static void readLine(String line, int number, Consumer<UsageEntry> to, Damage damage) {
    for (int at = line.indexOf(MARK); at >= 0; at = line.indexOf(MARK, at + 1)) {
      UsageEntry entry = entry(line.substring(at));
      if (entry != null) {
        to.accept(entry);
        if (at == 0) {
          return;
        }
        break; // after a record whose end was damaged
      }
    }
    damage.found(number, line.length() <= MOST_SHOWN ? line : line.substring(0, MOST_SHOWN) + "…");
  }

  private static @Nullable UsageEntry entry(String text) {
    int blank = 1 + CHECKSUM_DIGITS;
    if (text.length() <= blank || text.charAt(blank) != ' ') {
      return null;
    }
    String values = text.substring(blank + 1);
    if (!checksum(values).equals(text.substring(1, blank))) {
      return null;
    }
    String[] fields = values.split(" ", -1);
    int counters = counters(fields[0]);
    int timed = fields[0].equals(VERSION) ? 1 : 0;
    if (fields.length != FIRST_COUNTER + 3 * counters + timed) {
      return null; // a later version: the checksum is right, but the values have another meaning
    }
    try {
      return new UsageEntry(
          URLDecoder.decode(fields[1], StandardCharsets.UTF_8),
          URLDecoder.decode(fields[2], StandardCharsets.UTF_8),
          URLDecoder.decode(fields[3], StandardCharsets.UTF_8),
          Long.parseLong(fields[4]),
          Long.parseLong(fields[5]),
          timed == 0 ? 0 : Long.parseLong(fields[fields.length - 1]),
          fields[6].equals("1"),
          counters(fields, FIRST_COUNTER, counters),
          counters(fields, FIRST_COUNTER + counters, counters),
          counters(fields, FIRST_COUNTER + 2 * counters, counters));
    } catch (IllegalArgumentException e) {
      return null;
    }
  }

  /** The number of counters in each group of a line of this version; negative if unknown. */
  private static int counters(String version) {
    return switch (version) {
      case FIRST_VERSION -> FIRST_COUNTERS;
      case SECOND_VERSION, VERSION -> COUNTERS;
      default -> -COUNTERS;
    };
  }

  /** A counter that an earlier version did not have is 0. */
  private static Counters counters(String[] fields, int from, int count) {
    long[] values = new long[COUNTERS];
    for (int i = 0; i < count; i++) {
      values[i] = Long.parseLong(fields[from + i]);
      if (values[i] < 0) {
        throw new IllegalArgumentException("a count is negative: " + values[i]);
      }
    }
    return new Counters(
        values[0], values[1], values[2], values[3], values[4], values[5], values[6]);
  }
}
