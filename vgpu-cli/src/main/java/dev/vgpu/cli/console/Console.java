package dev.vgpu.cli.console;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.function.IntSupplier;
import java.util.function.Supplier;
import picocli.CommandLine.Help.Ansi;

/**
 * Standard output and standard error, and whether each is a terminal. Data goes to standard output;
 * progress and errors go to standard error. Text written to either may come from other processes,
 * so control characters in it are replaced. A command that itself draws on the terminal uses {@link
 * #outDrawn} and {@link #errDrawn}. Immutable; the streams are safe for use by several threads.
 */
public final class Console {
  private static final String NO_REASON = "it takes no more text";

  private final PrintStream out;
  private final PrintStream err;
  private final PrintStream outDrawn;
  private final PrintStream errDrawn;
  private final boolean outIsTerminal;
  private final boolean errIsTerminal;
  private final Ansi outAnsi;
  private final Ansi errAnsi;
  private final IntSupplier columns;
  private final Supplier<Optional<String>> outFailure;

  /**
   * Creates a console over any streams, without colour.
   *
   * @param out for data
   * @param err for progress and errors
   */
  public Console(PrintStream out, PrintStream err) {
    this(out, err, false, false, false, () -> TerminalWidth.LEAST, () -> Optional.of(NO_REASON));
  }

  /**
   * {@return a console over any streams, treated as a terminal with colours}
   *
   * @param out for data
   * @param err for progress and errors
   */
  public static Console ofTerminal(PrintStream out, PrintStream err) {
    return ofTerminal(out, err, TerminalWidth.LEAST);
  }

  /**
   * {@return a console over any streams, treated as a terminal with colours}
   *
   * @param out for data
   * @param err for progress and errors
   * @param columns the width of the terminal
   */
  public static Console ofTerminal(PrintStream out, PrintStream err, int columns) {
    return new Console(
        out,
        err,
        true,
        true,
        true,
        () -> TerminalWidth.within(columns),
        () -> Optional.of(NO_REASON));
  }

  private Console(
      PrintStream out,
      PrintStream err,
      boolean outTerminal,
      boolean errTerminal,
      boolean colour,
      IntSupplier columns,
      Supplier<Optional<String>> outFailure) {
    this.outDrawn = requireNonNull(out, "out");
    this.errDrawn = requireNonNull(err, "err");
    this.out = HarmlessText.stream(outDrawn);
    this.err = HarmlessText.stream(errDrawn);
    this.outIsTerminal = outTerminal;
    this.errIsTerminal = errTerminal;
    this.outAnsi = outTerminal && colour ? Ansi.ON : Ansi.OFF;
    this.errAnsi = errTerminal && colour ? Ansi.ON : Ansi.OFF;
    this.columns = columns;
    this.outFailure = outFailure;
  }

  /**
   * {@return the console of this process, in UTF-8; it uses colour only on a terminal, and only if
   * {@code NO_COLOR} is not set}
   *
   * @param environment the environment variables
   */
  public static Console ofProcess(Map<String, String> environment) {
    boolean colour =
        environment.getOrDefault("NO_COLOR", "").isEmpty()
            && !environment.getOrDefault("TERM", "").equals("dumb");
    KeptFailure out = new KeptFailure(new FileOutputStream(FileDescriptor.out));
    return new Console(
        new PrintStream(out, true, UTF_8),
        new PrintStream(new FileOutputStream(FileDescriptor.err), true, UTF_8),
        isTerminal(1),
        isTerminal(2),
        colour,
        () -> TerminalWidth.of(environment),
        () -> isPipe(1) ? Optional.empty() : Optional.of(out.failure));
  }

  /** {@return the stream for data} */
  public PrintStream out() {
    return out;
  }

  /** {@return the stream for progress and errors} */
  public PrintStream err() {
    return err;
  }

  /**
   * {@return standard output for colours and cursor movement; write text of other processes to it
   * only a line at a time, made harmless}
   */
  public PrintStream outDrawn() {
    return outDrawn;
  }

  /**
   * Writes a line with colours on standard output.
   *
   * @param line text with picocli's colour markup; the rest of it may come from other processes
   */
  public void printStyled(String line) {
    outDrawn.println(outAnsi.string(HarmlessText.oneLine(line)));
  }

  /**
   * {@return why text for standard output was lost; empty if none was, and if its reader has gone:
   * whoever closes a pipe wants no more of it}
   */
  public Optional<String> lostOutput() {
    return out.checkError() ? outFailure.get() : Optional.empty();
  }

  /** {@return standard error for colours and cursor movement, with the same rule} */
  public PrintStream errDrawn() {
    return errDrawn;
  }

  /** {@return whether standard output is a terminal, so that its text can be overwritten} */
  public boolean outIsTerminal() {
    return outIsTerminal;
  }

  /** {@return whether standard error is a terminal, so that a line can be overwritten} */
  public boolean errIsTerminal() {
    return errIsTerminal;
  }

  /** {@return the longest line of text for standard output: 80, or more on a wider terminal} */
  public int textWidth() {
    return outIsTerminal ? columns.getAsInt() : TerminalWidth.LEAST;
  }

  /**
   * {@return the longest line of a table for standard output: on a terminal, as for text; elsewhere
   * unlimited, so that a program that reads the table gets all of it}
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

  /** Java has no isatty. On Linux the descriptor's link in /proc tells; elsewhere it is no. */
  private static boolean isTerminal(int descriptor) {
    String target = target(descriptor);
    return target.startsWith("/dev/pts/")
        || target.startsWith("/dev/tty")
        || target.equals("/dev/console");
  }

  private static boolean isPipe(int descriptor) {
    String target = target(descriptor);
    return target.startsWith("pipe:") || target.startsWith("socket:");
  }

  private static String target(int descriptor) {
    try {
      return Files.readSymbolicLink(Path.of("/proc/self/fd/" + descriptor)).toString();
    } catch (IOException | UnsupportedOperationException e) {
      return "";
    }
  }

  /** Keeps why writing failed: a PrintStream only says that it did. */
  private static final class KeptFailure extends FilterOutputStream {
    private volatile String failure = NO_REASON;

    KeptFailure(OutputStream to) {
      super(to);
    }

    @Override
    public void write(byte[] bytes, int from, int length) throws IOException {
      try {
        out.write(bytes, from, length);
      } catch (IOException e) {
        failure = String.valueOf(e.getMessage());
        throw e;
      }
    }
  }
}
