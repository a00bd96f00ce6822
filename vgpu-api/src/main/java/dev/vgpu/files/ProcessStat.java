package dev.vgpu.files;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalLong;

/** What the kernel says of a process or a thread in {@code /proc/PID/stat}. Immutable. */
public final class ProcessStat {
  private static final char UNKNOWN = '?';

  /** More than 52 fields of 20 digits and a name can have. */
  private static final int MOST_BYTES = 2 << 10;

  /** A field, with its number in the manual page proc_pid_stat(5). */
  public enum Field {
    /** A letter; see {@link #state}. */
    STATE(3),
    /** The process group. */
    GROUP(5),
    /** The session: the process id of its leader. */
    SESSION(6),
    /** The controlling terminal's device number; 0 without one. */
    TERMINAL(7),
    /** The process group in the foreground of the terminal; -1 without one. */
    FOREGROUND_GROUP(8),
    /** The time in user mode, in ticks of 10 ms. */
    USER_TICKS(14),
    /** The time in kernel mode, in ticks of 10 ms. */
    SYSTEM_TICKS(15),
    /** The nice value. */
    NICE(19),
    /** When it began, in ticks of 10 ms since the boot. */
    START(22),
    /** The number of its scheduling policy. */
    POLICY(41);

    private final int number;

    Field(int number) {
      this.number = number;
    }
  }

  /** The fields after the name, from the third on, each behind a blank. */
  private final String fields;

  private ProcessStat(String fields) {
    this.fields = fields;
  }

  /**
   * {@return what the kernel says now}
   *
   * @param process the directory of a process or of a thread
   * @throws IOException if it has ended, or its file cannot be read
   */
  public static ProcessStat read(Path process) throws IOException {
    // Read often, and Files.readAllBytes would take 16 KiB for a file whose size is not known.
    try (InputStream in = Files.newInputStream(process.resolve("stat"))) {
      return of(new String(in.readNBytes(MOST_BYTES), ISO_8859_1));
    }
  }

  /**
   * {@return what a text of the kernel says}
   *
   * @param text the content of the file; anything else gives no fields, or wrong ones
   */
  public static ProcessStat of(String text) {
    // The second field is the name, in parentheses. A process chooses its name, and may put
    // parentheses, spaces and numbers into it; the fields after it hold no parenthesis.
    int nameEnd = text.lastIndexOf(')');
    return new ProcessStat(nameEnd < 0 ? "" : text.substring(nameEnd + 1).stripTrailing());
  }

  /** {@return the letter of the state, such as R for running or ready; ? if it is not known} */
  public char state() {
    String state = text(Field.STATE);
    return state.length() == 1 ? state.charAt(0) : UNKNOWN;
  }

  /** {@return a field; empty if it is missing} */
  public String text(Field field) {
    int blank = fields.indexOf(' ');
    for (int number = Field.STATE.number; number < field.number && blank >= 0; number++) {
      blank = fields.indexOf(' ', blank + 1);
    }
    if (blank < 0) {
      return "";
    }
    int end = fields.indexOf(' ', blank + 1);
    return end < 0 ? fields.substring(blank + 1) : fields.substring(blank + 1, end);
  }

  /** {@return a field; empty if it is missing or no number} */
  public OptionalLong number(Field field) {
    try {
      return OptionalLong.of(Long.parseLong(text(field)));
    } catch (NumberFormatException e) {
      return OptionalLong.empty();
    }
  }
}
