package dev.vgpu.cli.console;

/** The exit codes of the command. Those above 2 follow {@code sysexits.h} and the shells. */
public final class ExitCodes {
  /** Done. */
  public static final int DONE = 0;

  /** Failed. */
  public static final int FAILED = 1;

  /** The command line is wrong. */
  public static final int USAGE = 2;

  /** Nothing on this machine can do it: no GPU, or no suitable backend. */
  public static final int UNAVAILABLE = 69;

  /** There is no room now; there may be later. */
  public static final int NO_CAPACITY = 75;

  /** The program was found, but cannot be started, or cannot be started under a virtual GPU. */
  public static final int NOT_EXECUTABLE = 126;

  /** The program was not found. */
  public static final int NOT_FOUND = 127;

  private ExitCodes() {}
}
