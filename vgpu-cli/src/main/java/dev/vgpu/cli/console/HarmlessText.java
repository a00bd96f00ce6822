package dev.vgpu.cli.console;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.PrintStream;

/**
 * Makes text from other processes safe for a terminal. Names, reasons and messages may contain
 * sequences that move the cursor, set the title, or type input for the user. Each invisible
 * character is replaced by a visible one.
 */
public final class HarmlessText {
  private static final char REPLACEMENT = '\ufffd';

  private HarmlessText() {}

  /**
   * {@return the text on one line, without terminal control characters}
   *
   * @param text from any source
   */
  public static String oneLine(String text) {
    StringBuilder harmless = new StringBuilder(text.length());
    text.chars().forEach(c -> harmless.append(isHarmless(c) ? (char) c : REPLACEMENT));
    return harmless.toString();
  }

  /**
   * Whether a character is neither a control nor a line separator nor a format character, such as
   * one that changes the direction of text.
   */
  private static boolean isHarmless(int c) {
    return !Character.isISOControl(c)
        && Character.getType(c) != Character.FORMAT
        && Character.getType(c) != Character.LINE_SEPARATOR
        && Character.getType(c) != Character.PARAGRAPH_SEPARATOR;
  }

  /**
   * {@return a stream that passes line ends and tabs, and no other control character}
   *
   * @param to where its output goes
   */
  static PrintStream stream(PrintStream to) {
    return new PrintStream(new Filter(to), true, UTF_8);
  }

  /** Filters UTF-8. A character must not be split between two streams. */
  private static final class Filter extends FilterOutputStream {
    private static final byte[] REPLACED = String.valueOf(REPLACEMENT).getBytes(UTF_8);
    private static final int LEAST = ' ';
    private static final int DELETE = 0x7f;

    /** The first byte, in UTF-8, of the control characters 0x80 to 0x9f. */
    private static final int LEAD = 0xc2;

    private static final int LAST_SECOND = 0x9f;

    private final PrintStream to;
    private boolean afterLead;

    Filter(PrintStream to) {
      super(to);
      this.to = to;
    }

    @Override
    public void write(int b) throws IOException {
      write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int from, int length) throws IOException {
      ByteArrayOutputStream clean = new ByteArrayOutputStream(length + 2);
      for (int i = from; i < from + length; i++) {
        int b = bytes[i] & 0xff;
        if (afterLead) {
          afterLead = false;
          if (b <= LAST_SECOND) {
            clean.writeBytes(REPLACED);
          } else {
            clean.write(LEAD);
            clean.write(b);
          }
        } else if (b == LEAD) {
          afterLead = true;
        } else if ((b < LEAST && b != '\n' && b != '\t') || b == DELETE) {
          clean.writeBytes(REPLACED);
        } else {
          clean.write(b);
        }
      }
      to.write(clean.toByteArray(), 0, clean.size());
    }

    @Override
    public void flush() throws IOException {
      if (to.checkError()) { // flushes
        throw new IOException("nobody reads what is written");
      }
    }
  }
}
