package dev.vgpu.cuda.suspend;

import dev.vgpu.GpuSuspendException;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/**
 * NVIDIA's first {@code cuda-checkpoint} (drivers 550 to 565). It has only {@code --toggle}, which
 * locks and suspends, or restores and unlocks, in one step and without a timeout of its own. A
 * process counts as suspended if it has no GPU device file open. Immutable.
 */
final class ToggleTool implements CheckpointTool {
  private final ToolProcess program;
  private final Path proc;

  ToggleTool(ToolProcess program, Path proc) {
    this.program = program;
    this.proc = proc;
  }

  @Override
  public String description() {
    return program.program() + " (toggle only)";
  }

  @Override
  public void take(Step step, long pid, long timeoutNs) {
    boolean suspend = step == Step.CHECKPOINT;
    if (step == Step.LOCK
        || step == Step.UNLOCK
        || state(pid) == (suspend ? State.CHECKPOINTED : State.RUNNING)) {
      return; // included in the other two steps, or already done
    }
    ToolProcess.Outcome outcome = program.run(timeoutNs, "--toggle", "--pid", Long.toString(pid));
    if (!outcome.isDone()) {
      throw new GpuSuspendException(
          "pid "
              + pid
              + " cannot be "
              + (suspend ? "suspended" : "brought back")
              + (outcome.killed()
                  ? " within " + TimeUnit.NANOSECONDS.toMillis(timeoutNs) + " ms"
                  : ": " + outcome.reason())
              + ": pid="
              + pid);
    }
  }

  @Override
  public State state(long pid) {
    try (DirectoryStream<Path> files =
        Files.newDirectoryStream(proc.resolve(Long.toString(pid)).resolve("fd"))) {
      for (Path file : files) {
        if (isGpu(file)) {
          return State.RUNNING;
        }
      }
      return State.CHECKPOINTED;
    } catch (IOException e) {
      return State.UNKNOWN;
    }
  }

  private static boolean isGpu(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString().matches("/dev/nvidia[0-9]+");
    } catch (IOException e) {
      return false; // closed meanwhile
    }
  }
}
