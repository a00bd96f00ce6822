package dev.vgpu.bench.demo.child;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * The demo's child processes. They are terminated when this object is closed, and when this JVM
 * shuts down, also by Ctrl-C or SIGTERM. After a {@code kill -9} the kernel closes their standard
 * input, which {@link ChildProcess} watches. Safe for use by several threads.
 */
public final class Children implements AutoCloseable {
  private static final long GRACE_MS = 2_500;

  private final List<Process> processes = new ArrayList<>();
  private final Thread hook = new Thread(this::endAll, "vgpu-children");
  private boolean closed;

  /** Ends them all at the end of this JVM at the latest. */
  public Children() {
    Runtime.getRuntime().addShutdownHook(hook);
  }

  /** A way to start a process. */
  @FunctionalInterface
  public interface Starter {
    /** {@return the started process} */
    public Process start(ProcessBuilder builder) throws IOException;
  }

  /** Starts a process that is terminated with this object. */
  public Process start(ProcessBuilder builder) throws IOException {
    return start(builder, ProcessBuilder::start);
  }

  /** Starts a process that is terminated with this object. */
  public synchronized Process start(ProcessBuilder builder, Starter starter) throws IOException {
    if (closed) {
      throw new IllegalStateException("the demo is ending");
    }
    Process process = starter.start(builder);
    processes.add(process);
    return process;
  }

  /** {@return the processor time used by the children and this process} */
  public synchronized Duration processorTime() {
    return Stream.concat(
            Stream.of(ProcessHandle.current()), processes.stream().map(Process::toHandle))
        .map(process -> process.info().totalCpuDuration().orElse(Duration.ZERO))
        .reduce(Duration.ZERO, Duration::plus);
  }

  /** Terminates all processes and waits until they have ended. */
  @Override
  public void close() {
    endAll();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // This JVM is shutting down, and the shutdown hook does the same.
    }
  }

  private synchronized void endAll() {
    closed = true;
    // Process.destroy() would also close the process's standard input: the server would exit at
    // once, instead of closing its virtual GPUs.
    processes.forEach(process -> process.toHandle().destroy());
    for (Process process : processes) {
      if (!hasEnded(process)) {
        process.destroyForcibly();
      }
    }
  }

  private static boolean hasEnded(Process process) {
    try {
      return process.waitFor(GRACE_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
