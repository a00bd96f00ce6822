package dev.vgpu.cuda.suspend;

import dev.vgpu.GpuSuspendException;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * Takes single steps of suspending the CUDA part of processes: our own program, which calls the
 * driver, or NVIDIA's {@code cuda-checkpoint}, which takes the same options. Immutable.
 */
interface CheckpointTool {
  /** What looking at a process may take. */
  long LOOK_NS = TimeUnit.SECONDS.toNanos(10);

  /** Where a process stands, as the driver sees it. */
  enum State {
    /** It does what it likes. */
    RUNNING,
    /** Its calls wait; its memory is on the GPU. */
    LOCKED,
    /** Its calls wait; its memory is the host's. */
    CHECKPOINTED,
    /** Nothing brings it back. */
    FAILED,
    /** It is gone, or does not use CUDA. */
    UNKNOWN
  }

  /** A step that the driver can take. */
  enum Step {
    /** Its calls wait from now on; what it had started ends. */
    LOCK("lock"),
    /** The memory of a locked one moves to the host. */
    CHECKPOINT("checkpoint"),
    /** It moves back; it is locked still. */
    RESTORE("restore"),
    /** Its calls go on. */
    UNLOCK("unlock");

    private final String word;

    Step(String word) {
      this.word = word;
    }

    String word() {
      return word;
    }
  }

  /** {@return what it is, for people} */
  String description();

  /**
   * Takes a step. It may have had its effect though this throws; {@link #state} tells.
   *
   * @throws GpuSuspendException if the driver refuses, or it takes longer than that
   */
  void take(Step step, long pid, long timeoutNs);

  /** {@return where a process stands} */
  State state(long pid);

  /** {@return why a process cannot be suspended, as far as that can be told without trying} */
  default Optional<String> obstacle(long pid) {
    return Optional.empty();
  }
}
