package dev.vgpu.cli.trace;

/** Thrown if a line of a trace is corrupt. The message is {@code line N: what was wrong}. */
public final class TraceFormatException extends Exception {
  private static final long serialVersionUID = 1L;

  TraceFormatException(int line, String problem) {
    super("line " + line + ": " + problem);
  }
}
