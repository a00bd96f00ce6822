package dev.vgpu.cli.demo;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * The demo's processes. They end when this is closed, and when this JVM ends for whatever reason,
 * Ctrl-C and SIGTERM included; a {@code kill -9} closes their standard input, which {@link
 * ChildProcess} watches. Safe for use by several threads.
 */
final class Children implements AutoCloseable {
  private static final long GRACE_MS = 2_500;

  private final List<Process> processes = new ArrayList<>();
  private final Thread hook = new Thread(this::endAll, "vgpu-children");
  private boolean closed;

  Children() {
    Runtime.getRuntime().addShutdownHook(hook);
  }

  /** Starts a process in its own way. */
  @FunctionalInterface
  interface Starter {
    /** {@return the process} */
    Process start(ProcessBuilder builder) throws IOException;
  }

  /** Starts a process that ends with this. */
  Process start(ProcessBuilder builder) throws IOException {
    return start(builder, ProcessBuilder::start);
  }

  /** Starts a process that ends with this. */
  synchronized Process start(ProcessBuilder builder, Starter starter) throws IOException {
    if (closed) {
      throw new IllegalStateException("the demo is ending");
    }
    Process process = starter.start(builder);
    processes.add(process);
    return process;
  }

  /** {@return the processor time that they and this process have used} */
  synchronized Duration processorTime() {
    return Stream.concat(
            Stream.of(ProcessHandle.current()), processes.stream().map(Process::toHandle))
        .map(process -> process.info().totalCpuDuration().orElse(Duration.ZERO))
        .reduce(Duration.ZERO, Duration::plus);
  }

  /** Ends all processes and waits until they are gone. */
  @Override
  public void close() {
    endAll();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // This JVM is ending, and the hook does the same.
    }
  }

  private synchronized void endAll() {
    closed = true;
    processes.forEach(Process::destroy);
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
