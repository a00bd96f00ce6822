package dev.vgpu.cli.console;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.PrintStream;

/**
 * What other processes say, as a terminal can show it: names, reasons and messages may hold
 * sequences that move the cursor, set the title, or answer for the user. Each character that is not
 * to be seen is replaced by one that is.
 */
public final class HarmlessText {
  private static final char REPLACEMENT = '\ufffd';

  private HarmlessText() {}

  /**
   * {@return the text on one line, without anything that a terminal obeys}
   *
   * @param text anybody's
   */
  public static String oneLine(String text) {
    StringBuilder harmless = new StringBuilder(text.length());
    text.chars().forEach(c -> harmless.append(isHarmless(c) ? (char) c : REPLACEMENT));
    return harmless.toString();
  }

  /** Neither a control character nor one that changes the order of those beside it. */
  private static boolean isHarmless(int c) {
    return !Character.isISOControl(c)
        && Character.getType(c) != Character.FORMAT
        && Character.getType(c) != Character.LINE_SEPARATOR
        && Character.getType(c) != Character.PARAGRAPH_SEPARATOR;
  }

  /**
   * {@return a stream that lets ends of lines and tabs through, and no other control character}
   *
   * @param to where it goes
   */
  static PrintStream stream(PrintStream to) {
    return new PrintStream(new Filter(to), true, UTF_8);
  }

  /** Of UTF-8; the characters are not split between two streams. */
  private static final class Filter extends FilterOutputStream {
    private static final byte[] REPLACED = String.valueOf(REPLACEMENT).getBytes(UTF_8);
    private static final int LEAST = ' ';
    private static final int DELETE = 0x7f;

    /** What the control characters from 0x80 to 0x9f begin with. */
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
