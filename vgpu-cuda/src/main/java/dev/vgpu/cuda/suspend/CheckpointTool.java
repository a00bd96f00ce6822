package dev.vgpu.cuda.suspend;

import dev.vgpu.GpuSuspendException;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * Takes the single steps of suspending a process's CUDA state. The tool is either our own program,
 * which calls the driver, or NVIDIA's {@code cuda-checkpoint}, which takes the same options.
 * Immutable.
 */
interface CheckpointTool {
  /** Time limit for querying a process's state. */
  long LOOK_NS = TimeUnit.SECONDS.toNanos(10);

  /** The state of a process, as the driver sees it. */
  enum State {
    /** It runs normally. */
    RUNNING,
    /** Its CUDA calls block; its memory is on the GPU. */
    LOCKED,
    /** Its CUDA calls block; its memory is on the host. */
    CHECKPOINTED,
    /** It cannot be restored. */
    FAILED,
    /** It is gone, or does not use CUDA. */
    UNKNOWN
  }

  /** A step that the driver can take. */
  enum Step {
    /** Blocks new CUDA calls; work that was started before completes. */
    LOCK("lock"),
    /** Moves the memory of a locked process to the host. */
    CHECKPOINT("checkpoint"),
    /** Moves the memory back; the process stays locked. */
    RESTORE("restore"),
    /** Lets CUDA calls continue. */
    UNLOCK("unlock");

    private final String word;

    Step(String word) {
      this.word = word;
    }

    String word() {
      return word;
    }
  }

  /** {@return a description for people} */
  String description();

  /**
   * Takes a step. If this throws, the step may still have taken effect; see {@link #state}.
   *
   * @throws GpuSuspendException if the driver refuses, or the step takes longer than the timeout
   */
  void take(Step step, long pid, long timeoutNs);

  /** {@return the state of a process} */
  State state(long pid);

  /** {@return why a process cannot be suspended, as far as that is known without trying} */
  default Optional<String> obstacle(long pid) {
    return Optional.empty();
  }
}
