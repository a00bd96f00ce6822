package dev.vgpu.simulation.trace;

/**
 * Thrown if a trace is missing, unreadable or corrupt. The message says what was wrong, and where.
 */
public final class TraceFormatException extends Exception {
  private static final long serialVersionUID = 1L;

  TraceFormatException(int line, String problem) {
    super("line " + line + ": " + problem);
  }

  TraceFormatException(String problem, Exception cause) {
    super(problem, cause);
  }
}
