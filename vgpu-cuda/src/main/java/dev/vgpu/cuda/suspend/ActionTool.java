package dev.vgpu.cuda.suspend;

import dev.vgpu.GpuSuspendException;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A tool that takes each step separately: {@code --action STEP}, from driver 570 on. Immutable. */
final class ActionTool implements CheckpointTool {
  /** A lock ends at its own timeout; the program is killed this much later. */
  private static final long GRACE_NS = TimeUnit.MILLISECONDS.toNanos(500);

  private static final Pattern CODE = Pattern.compile("\\((\\d{1,4})\\)");

  private final ToolProcess program;
  private final String description;

  ActionTool(ToolProcess program, String description) {
    this.program = program;
    this.description = description;
  }

  @Override
  public String description() {
    return description;
  }

  @Override
  public void take(Step step, long pid, long timeoutNs) {
    long timeoutMs = Math.max(1, TimeUnit.NANOSECONDS.toMillis(timeoutNs));
    String number = Long.toString(pid);
    ToolProcess.Outcome outcome =
        step == Step.LOCK
            ? program.run(
                timeoutNs + GRACE_NS,
                "--action",
                step.word(),
                "--pid",
                number,
                "--timeout",
                Long.toString(timeoutMs))
            : program.run(timeoutNs, "--action", step.word(), "--pid", number);
    if (!outcome.isDone()) {
      throw new GpuSuspendException(
          "pid "
              + pid
              + " cannot be "
              + past(step)
              + ": "
              + (outcome.killed() ? late(timeoutMs) : reason(outcome.reason(), timeoutMs))
              + ": pid="
              + pid);
    }
  }

  private static String past(Step step) {
    return switch (step) {
      case LOCK -> "locked";
      case CHECKPOINT -> "suspended";
      case RESTORE -> "brought back";
      case UNLOCK -> "unlocked";
    };
  }

  private static String late(long timeoutMs) {
    return "not within " + timeoutMs + " ms (is it stopped, or waiting for another process?)";
  }

  /** Describes the driver's error code, if it is known. */
  private static String reason(String text, long timeoutMs) {
    Matcher code = CODE.matcher(text);
    String words =
        switch (code.find() ? Integer.parseInt(code.group(1)) : -1) {
          case 1 -> "the driver knows no such process: it does not use CUDA, or is gone";
          case 2 -> "its GPU has no room for its memory now";
          case 401 ->
              "it is in the wrong state for this step; another process may be suspending it";
          case 600 -> late(timeoutMs);
          case 801 ->
              "the driver cannot suspend processes that use managed memory or share memory with"
                  + " others (IPC), nor those under MPS";
          default -> "the driver refuses";
        };
    return words + " [" + text + "]";
  }

  @Override
  public State state(long pid) {
    ToolProcess.Outcome outcome = program.run(LOOK_NS, "--get-state", "--pid", Long.toString(pid));
    return outcome.isDone() ? parse(outcome.out()) : State.UNKNOWN;
  }

  /** Parses the output of {@code --get-state}. */
  static State parse(String text) {
    return switch (text.strip().toLowerCase(Locale.ROOT)) {
      case "running" -> State.RUNNING;
      case "locked" -> State.LOCKED;
      case "checkpointed" -> State.CHECKPOINTED;
      case "failed" -> State.FAILED;
      default -> State.UNKNOWN;
    };
  }
}
