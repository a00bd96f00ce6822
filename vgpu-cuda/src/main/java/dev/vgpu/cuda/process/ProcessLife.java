package dev.vgpu.cuda.process;

import java.util.List;
import java.util.OptionalLong;

/**
 * What the seat can find out about the processes of its tenants. Safe for use by several threads.
 */
public interface ProcessLife {
  /** What is known of a process that a pid and a start time name. */
  enum State {
    /** It runs. */
    ALIVE,
    /** It is there, and was stopped by a signal or a debugger. */
    STOPPED,
    /** It is gone, or has let go of its memory and runs no more. */
    DEAD
  }

  /** What is known of a file and a process's memory. */
  enum Mapping {
    /** The process has it mapped. */
    MAPPED,
    /** It has not. */
    NOT_MAPPED,
    /** It cannot be told: it may not be read, the process is ending, or has too many mappings. */
    UNKNOWN
  }

  /** {@return the inode of this process's own pid namespace; 0 if it cannot be told} */
  long pidNamespace();

  /**
   * {@return what is known of a process}
   *
   * @param pid its id in this process's namespace
   * @param startTime its start time, as in field 22 of {@code /proc/PID/stat}
   */
  State state(long pid, long startTime);

  /**
   * {@return the id that a process of another namespace has in this process's; empty if none is
   * seen that lives} Takes as long as a look at all processes of the node.
   *
   * @param pid its id in the innermost of its namespaces
   * @param startTime its start time, as in field 22 of {@code /proc/PID/stat}
   */
  OptionalLong pidHere(long pid, long startTime);

  /**
   * {@return whether a file is mapped by a process} Takes as long as the process makes it take.
   *
   * @param pid its id in this process's namespace
   * @param pathEnd how the file's path ends
   */
  Mapping mapping(long pid, String pathEnd);

  /**
   * {@return a process that was started with all of these variables; empty if none is seen that
   * lives} Takes as long as a look at all processes of the node.
   *
   * @param variables each as {@code NAME=VALUE}
   */
  OptionalLong startedWith(List<String> variables);

  /**
   * {@return whether a process was started with all of these variables, and lives}
   *
   * @param pid its id in this process's namespace
   * @param variables each as {@code NAME=VALUE}
   */
  boolean isStartedWith(long pid, List<String> variables);
}
