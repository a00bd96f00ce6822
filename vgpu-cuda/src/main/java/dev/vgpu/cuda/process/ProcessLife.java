package dev.vgpu.cuda.process;

import java.util.List;
import java.util.OptionalLong;

/** What the seat can learn about its tenants' processes. Safe for use by several threads. */
public interface ProcessLife {
  /** The state of a process that is named by pid and start time. */
  enum State {
    /** It runs. */
    ALIVE,
    /** It exists, and was stopped by a signal or a debugger. */
    STOPPED,
    /** It is gone, or has released its memory and no longer runs. */
    DEAD
  }

  /** Whether a process has a file mapped. */
  enum Mapping {
    /** The file is mapped. */
    MAPPED,
    /** The file is not mapped. */
    NOT_MAPPED,
    /** Unknown: the mappings are unreadable or too many, or the process is exiting. */
    UNKNOWN
  }

  /** {@return the inode of this process's own pid namespace; 0 if unknown} */
  long pidNamespace();

  /**
   * {@return the state of a process}
   *
   * @param pid its id in this process's namespace
   * @param startTime its start time, as in field 22 of {@code /proc/PID/stat}
   */
  State state(long pid, long startTime);

  /**
   * {@return whether a process is seen to run a program in this process's own pid namespace} False
   * for threads of the kernel, and if the kernel does not let this process look.
   *
   * @param pid its id in this process's namespace
   */
  boolean isHere(long pid);

  /**
   * {@return the pid, in this process's namespace, of a process in another one; empty if no such
   * process is seen alive} Scans all processes of the node.
   *
   * @param pid its id in the innermost of its namespaces
   * @param startTime its start time, as in field 22 of {@code /proc/PID/stat}
   */
  OptionalLong pidHere(long pid, long startTime);

  /**
   * {@return whether a process has a file mapped} The other process determines how long this takes.
   *
   * @param pid its id in this process's namespace
   * @param pathEnd the end of the file's path
   */
  Mapping mapping(long pid, String pathEnd);

  /**
   * {@return a process that was started with all of these variables; empty if none is seen alive}
   * Scans all processes of the node.
   *
   * @param variables each as {@code NAME=VALUE}
   */
  OptionalLong startedWith(List<String> variables);

  /**
   * {@return whether a process is alive and was started with all of these variables}
   *
   * @param pid its id in this process's namespace
   * @param variables each as {@code NAME=VALUE}
   */
  boolean isStartedWith(long pid, List<String> variables);
}
