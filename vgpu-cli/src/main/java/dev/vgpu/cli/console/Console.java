package dev.vgpu.cli.console;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.IntSupplier;
import picocli.CommandLine.Help.Ansi;

/**
 * Standard output and standard error, and whether each is a terminal. Data goes to the first,
 * progress and errors to the second. What is written to either may come from other processes, so
 * nothing in it is left that a terminal obeys; what this command itself means to do to a terminal
 * is written to {@link #outDrawn} and {@link #errDrawn}. Immutable; the streams are safe for use by
 * several threads.
 */
public final class Console {
  private final PrintStream out;
  private final PrintStream err;
  private final PrintStream outDrawn;
  private final PrintStream errDrawn;
  private final boolean outIsTerminal;
  private final boolean errIsTerminal;
  private final Ansi outAnsi;
  private final Ansi errAnsi;
  private final IntSupplier columns;

  /**
   * Creates a console over any streams, without colour.
   *
   * @param out for data
   * @param err for progress and errors
   */
  public Console(PrintStream out, PrintStream err) {
    this(out, err, false, false, false, () -> TerminalWidth.LEAST);
  }

  /**
   * {@return a console over any streams that are taken for a terminal with colours}
   *
   * @param out for data
   * @param err for progress and errors
   */
  public static Console ofTerminal(PrintStream out, PrintStream err) {
    return ofTerminal(out, err, TerminalWidth.LEAST);
  }

  /**
   * {@return a console over any streams that are taken for a terminal with colours}
   *
   * @param out for data
   * @param err for progress and errors
   * @param columns how wide it is
   */
  public static Console ofTerminal(PrintStream out, PrintStream err, int columns) {
    return new Console(out, err, true, true, true, () -> TerminalWidth.within(columns));
  }

  private Console(
      PrintStream out,
      PrintStream err,
      boolean outTerminal,
      boolean errTerminal,
      boolean colour,
      IntSupplier columns) {
    this.outDrawn = requireNonNull(out, "out");
    this.errDrawn = requireNonNull(err, "err");
    this.out = HarmlessText.stream(outDrawn);
    this.err = HarmlessText.stream(errDrawn);
    this.outIsTerminal = outTerminal;
    this.errIsTerminal = errTerminal;
    this.outAnsi = outTerminal && colour ? Ansi.ON : Ansi.OFF;
    this.errAnsi = errTerminal && colour ? Ansi.ON : Ansi.OFF;
    this.columns = columns;
  }

  /**
   * {@return the console of this process, in UTF-8; with colour on a terminal only, and not where
   * {@code NO_COLOR} is set}
   *
   * @param environment the environment's variables
   */
  public static Console ofProcess(Map<String, String> environment) {
    boolean colour =
        environment.getOrDefault("NO_COLOR", "").isEmpty()
            && !environment.getOrDefault("TERM", "").equals("dumb");
    return new Console(
        new PrintStream(new FileOutputStream(FileDescriptor.out), true, UTF_8),
        new PrintStream(new FileOutputStream(FileDescriptor.err), true, UTF_8),
        isTerminal(1),
        isTerminal(2),
        colour,
        () -> TerminalWidth.of(environment));
  }

  /** {@return where data goes} */
  public PrintStream out() {
    return out;
  }

  /** {@return where progress and errors go} */
  public PrintStream err() {
    return err;
  }

  /** {@return standard output for colours and what moves the cursor; of others' text only lines} */
  public PrintStream outDrawn() {
    return outDrawn;
  }

  /**
   * Writes a line with colours on standard output.
   *
   * @param line with marks of colours, as picocli has them; all else in it is anybody's
   */
  public void printStyled(String line) {
    outDrawn.println(outAnsi.string(HarmlessText.oneLine(line)));
  }

  /** {@return standard error, likewise} */
  public PrintStream errDrawn() {
    return errDrawn;
  }

  /** {@return whether what is on standard output can be overwritten} */
  public boolean outIsTerminal() {
    return outIsTerminal;
  }

  /** {@return whether a line on standard error can be overwritten} */
  public boolean errIsTerminal() {
    return errIsTerminal;
  }

  /** {@return how long lines of text on standard output may be: 80, or as the terminal is wider} */
  public int textWidth() {
    return outIsTerminal ? columns.getAsInt() : TerminalWidth.LEAST;
  }

  /**
   * {@return how long lines of tables on standard output may be: as those of text on a terminal, of
   * any length elsewhere, so that a program that reads them misses nothing}
   */
  public int tableWidth() {
    return outIsTerminal ? columns.getAsInt() : Integer.MAX_VALUE;
  }

  /** {@return colours for standard output} */
  public Ansi outAnsi() {
    return outAnsi;
  }

  /** {@return colours for standard error} */
  public Ansi errAnsi() {
    return errAnsi;
  }

  /** Java has no isatty; on Linux the link of the descriptor tells. Elsewhere: no. */
  private static boolean isTerminal(int descriptor) {
    Path link = Path.of("/proc/self/fd/" + descriptor);
    try {
      String target = Files.readSymbolicLink(link).toString();
      return target.startsWith("/dev/pts/")
          || target.startsWith("/dev/tty")
          || target.equals("/dev/console");
    } catch (IOException | UnsupportedOperationException e) {
      return false;
    }
  }
}
