package dev.vgpu.cuda.suspend;

import dev.vgpu.GpuSuspendException;
import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.cuda.process.ProcFiles;
import dev.vgpu.cuda.suspend.CheckpointTool.State;
import dev.vgpu.cuda.suspend.CheckpointTool.Step;
import dev.vgpu.spi.ProcessSuspender;
import dev.vgpu.watch.PhysicalGpu;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Suspends processes with the driver's checkpoint: locks all of them, then moves the memory of
 * each. Every step runs in a separate process ({@link CheckpointTool}). So a driver call that hangs
 * can be killed, and this JVM, which may be under a virtual GPU itself, loads no driver. If a step
 * fails, every process that was touched is unlocked again.
 *
 * <p>A step may take seconds, and a process may exit while it waits for its step. Each process is
 * therefore looked up once, at the start. If its pid is reused later, the new process is left
 * alone.
 */
public final class CheckpointSuspender implements ProcessSuspender {
  private static final Logger log = LoggerFactory.getLogger(CheckpointSuspender.class);
  private static final long LOOK_NS = TimeUnit.MILLISECONDS.toNanos(5);

  /** Time limit for undoing: long enough to restore the memory of a large GPU. */
  private static final long UNDO_NS = TimeUnit.SECONDS.toNanos(60);

  /** A killed step may still take effect for this long. */
  private static final long SETTLE_NS = TimeUnit.MILLISECONDS.toNanos(20);

  private final Map<String, String> environment;
  private final Path proc;
  private final NanoClock clock;
  private volatile @Nullable CheckpointTools tools;

  /** Called by {@code ServiceLoader}. */
  public CheckpointSuspender() {
    this(System.getenv(), Path.of("/proc"), NanoClock.SYSTEM);
  }

  CheckpointSuspender(Map<String, String> environment, Path proc, NanoClock clock) {
    this.environment = Map.copyOf(environment);
    this.proc = proc;
    this.clock = clock;
  }

  @Override
  public String name() {
    return "checkpoint";
  }

  @Override
  public void begin(Path runDirectory) {
    tools = new CheckpointTools(environment, runDirectory.toAbsolutePath());
  }

  private CheckpointTools.Found found(PhysicalGpu gpu) {
    CheckpointTools looked = tools;
    if (looked == null) {
      throw new IllegalStateException("begin() was not called");
    }
    return looked.of(gpu.provider());
  }

  @Override
  public Optional<String> obstacle(PhysicalGpu gpu) {
    if (!gpu.id().value().startsWith("GPU-") && !gpu.id().value().startsWith("MIG-")) {
      return Optional.of("it is no CUDA device");
    }
    CheckpointTools.Found found = found(gpu);
    return found.tool().isPresent() ? Optional.empty() : Optional.of(found.reason());
  }

  private CheckpointTool need(PhysicalGpu gpu) {
    CheckpointTools.Found found = found(gpu);
    return found
        .tool()
        .orElseThrow(
            () ->
                new GpuSuspendException(
                    "nothing here can suspend processes (driver 570 or later, or cuda-checkpoint in"
                        + " PATH, can): "
                        + found.reason()
                        + ": gpu="
                        + gpu.id()));
  }

  @Override
  public void suspend(PhysicalGpu gpu, List<Long> pids, Duration timeout) {
    CheckpointTool tool = need(gpu);
    long untilNs = clock.nanoTime() + timeout.toNanos();
    suspend(tool, lookUp(pids), untilNs);
  }

  private static List<ProcessHandle> lookUp(List<Long> pids) {
    return pids.stream().flatMap(pid -> ProcessHandle.of(pid).stream()).toList();
  }

  private void suspend(CheckpointTool tool, List<ProcessHandle> processes, long untilNs) {
    List<ProcessHandle> touched = new ArrayList<>();
    try {
      // Lock all first: processes that wait for each other on the GPU stop together.
      for (ProcessHandle process : processes) {
        if (mayBeSuspended(tool, process)) {
          touched.add(process);
          take(tool, Step.LOCK, process, untilNs);
        }
      }
      for (ProcessHandle process : touched) {
        take(tool, Step.CHECKPOINT, process, untilNs);
      }
    } catch (GpuSuspendException | UncheckedIOException e) {
      throw withRest(e, letRun(tool, touched, clock.nanoTime() + UNDO_NS, SETTLE_NS));
    }
  }

  /** {@return false if it is already suspended, or gone} */
  private boolean mayBeSuspended(CheckpointTool tool, ProcessHandle process) {
    long pid = process.pid();
    State state = tool.state(pid);
    if (state == State.CHECKPOINTED || !process.isAlive()) {
      return false;
    }
    if (runsUnderMps(pid)) {
      throw new GpuSuspendException(
          "pid " + pid + " cannot be suspended: it runs under MPS: pid=" + pid);
    }
    return switch (state) {
      case RUNNING -> true;
      case LOCKED ->
          throw new GpuSuspendException(
              "pid " + pid + " cannot be suspended: another process has locked it: pid=" + pid);
      case FAILED -> throw new GpuSuspendException(lost(pid));
      default ->
          throw new GpuSuspendException(
              "pid "
                  + pid
                  + " cannot be suspended: the driver knows no such process (does it run as another"
                  + " user, or in another container?): pid="
                  + pid);
    };
  }

  private static String lost(long pid) {
    return "pid " + pid + " has failed while it was suspended, and has to be ended: pid=" + pid;
  }

  private boolean runsUnderMps(long pid) {
    try {
      String environment = ProcFiles.environment(proc.resolve(Long.toString(pid)));
      return Arrays.stream(environment.split("\0", -1))
          .anyMatch(
              variable ->
                  variable.startsWith("CUDA_MPS_PIPE_DIRECTORY=")
                      && Files.exists(
                          Path.of(variable.substring(variable.indexOf('=') + 1), "control")));
    } catch (java.io.IOException | java.nio.file.InvalidPathException e) {
      return false; // the driver will report it
    }
  }

  private void take(CheckpointTool tool, Step step, ProcessHandle process, long untilNs) {
    long pid = process.pid();
    if (!process.isAlive()) {
      return;
    }
    long leftNs = untilNs - clock.nanoTime();
    if (leftNs <= 0) {
      throw new GpuSuspendException(
          "there was no time left to " + step.word() + " pid " + pid + ": pid=" + pid);
    }
    try {
      tool.take(step, pid, leftNs);
    } catch (GpuSuspendException e) {
      if (process.isAlive()) {
        throw e;
      }
    }
  }

  private static GpuSuspendException withRest(RuntimeException e, List<String> left) {
    String text = String.valueOf(e.getMessage());
    return new GpuSuspendException(
        left.isEmpty() ? text : text + "; " + String.join("; ", left), e);
  }

  // ---- back to running, from any state

  /** Lets processes run again. Returns a message for each process that cannot be brought back. */
  private List<String> letRun(
      CheckpointTool tool, List<ProcessHandle> processes, long untilNs, long settleNs) {
    List<String> left = new ArrayList<>();
    for (ProcessHandle process : processes) {
      String problem = letRun(tool, process, untilNs, settleNs);
      if (!problem.isEmpty()) {
        log.error("{}", problem);
        left.add(problem);
      }
    }
    return left;
  }

  private String letRun(CheckpointTool tool, ProcessHandle process, long untilNs, long settleNs) {
    long pid = process.pid();
    String last = "";
    long runsSinceNs = 0;
    while (process.isAlive()) {
      State state = tool.state(pid);
      long nowNs = clock.nanoTime();
      if (!process.isAlive()) {
        return ""; // the pid may be another process's by now
      }
      if (state == State.FAILED) {
        return lost(pid);
      }
      if (state == State.RUNNING) {
        runsSinceNs = runsSinceNs == 0 ? nowNs : runsSinceNs;
        if (nowNs - runsSinceNs >= settleNs) {
          return "";
        }
      } else {
        runsSinceNs = 0;
      }
      if (nowNs - untilNs >= 0) {
        return "pid " + pid + " is " + state + " still: " + last + ": pid=" + pid;
      }
      try {
        if (state == State.CHECKPOINTED) {
          tool.take(Step.RESTORE, pid, untilNs - nowNs);
        } else if (state == State.LOCKED) {
          tool.take(Step.UNLOCK, pid, untilNs - nowNs);
        } else {
          LockSupport.parkNanos(this, LOOK_NS);
        }
      } catch (GpuSuspendException | UncheckedIOException e) {
        last = String.valueOf(e.getMessage());
        LockSupport.parkNanos(this, LOOK_NS);
      }
    }
    return "";
  }

  @Override
  public void resume(PhysicalGpu gpu, List<Long> pids, Duration timeout) {
    CheckpointTool tool = need(gpu);
    long untilNs = clock.nanoTime() + timeout.toNanos();
    List<ProcessHandle> restored = new ArrayList<>();
    List<ProcessHandle> locked = new ArrayList<>();
    try {
      for (ProcessHandle process : lookUp(pids)) {
        State state = tool.state(process.pid());
        if (state == State.FAILED && process.isAlive()) {
          throw new GpuSuspendException(lost(process.pid()));
        }
        if (state == State.CHECKPOINTED) {
          take(tool, Step.RESTORE, process, untilNs);
          restored.add(process);
        }
        if (state == State.CHECKPOINTED || state == State.LOCKED) {
          locked.add(process);
        }
      }
    } catch (GpuSuspendException | UncheckedIOException e) {
      throw withRest(e, suspendAgain(tool, restored, clock.nanoTime() + UNDO_NS));
    }
    List<String> left = letRun(tool, locked, Math.max(untilNs, clock.nanoTime() + UNDO_NS), 0);
    if (!left.isEmpty()) {
      throw new GpuSuspendException(String.join("; ", left));
    }
  }

  private List<String> suspendAgain(
      CheckpointTool tool, List<ProcessHandle> processes, long untilNs) {
    List<String> left = new ArrayList<>();
    for (ProcessHandle process : processes) {
      try {
        take(tool, Step.CHECKPOINT, process, untilNs);
      } catch (GpuSuspendException | UncheckedIOException e) {
        log.error("{}", e.getMessage());
        left.add(String.valueOf(e.getMessage()));
      }
    }
    return left;
  }

  @Override
  public boolean recover(PhysicalGpu gpu, List<Long> pids, Duration timeout) {
    CheckpointTool tool = need(gpu);
    long untilNs = clock.nanoTime() + timeout.toNanos();
    List<ProcessHandle> alive = lookUp(pids).stream().filter(ProcessHandle::isAlive).toList();
    List<State> states = alive.stream().map(process -> tool.state(process.pid())).toList();
    if (!states.isEmpty() && states.stream().allMatch(state -> state == State.CHECKPOINTED)) {
      return true;
    }
    List<String> left = letRun(tool, alive, untilNs, SETTLE_NS);
    if (left.isEmpty()) {
      return false;
    }
    // They do not all fit on the GPU, so none may run.
    try {
      suspend(tool, alive, clock.nanoTime() + UNDO_NS);
      return true;
    } catch (GpuSuspendException e) {
      throw withRest(e, left);
    }
  }
}
