package dev.vgpu.bench.gpucheck.machine;

import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.request.GpuId;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Controls MPS for one GPU, in a separate directory, with the vendor's tool as people use it:
 * {@code -d}, and commands on standard input. Safe for use by several threads.
 */
public final class MpsControl {
  private static final double SECONDS = 10;
  private static final double GONE_SECONDS = 10;

  private final Path tool;
  private final Path directory;
  private final GpuId gpu;
  private boolean isStarted;

  /** Makes the directories of a daemon, and starts none. */
  public MpsControl(Path tool, Path directory, GpuId gpu) throws IOException {
    this.tool = tool;
    this.directory = directory;
    this.gpu = gpu;
    Files.createDirectories(directory.resolve("pipe"));
    Files.createDirectories(directory.resolve("log"));
  }

  /** {@return the environment with which a client finds it} */
  public Map<String, String> client() {
    Map<String, String> variables = new LinkedHashMap<>();
    variables.put("CUDA_MPS_PIPE_DIRECTORY", directory.resolve("pipe").toString());
    variables.put("CUDA_MPS_LOG_DIRECTORY", directory.resolve("log").toString());
    variables.put("CUDA_VISIBLE_DEVICES", gpu.value());
    return variables;
  }

  /** Starts the daemon. */
  public Done start() throws InterruptedException {
    synchronized (this) {
      isStarted = true;
    }
    return run(List.of(tool.toString(), "-d"));
  }

  /** Sends the daemon a command. */
  public Done ask(String command) throws InterruptedException {
    return run(List.of("sh", "-c", "printf '%s\\n' \"$1\" | \"$0\"", tool.toString(), command));
  }

  private Done run(List<String> command) throws InterruptedException {
    return Done.run(command, variables -> variables.putAll(client()), directory, SECONDS);
  }

  /** {@return its running processes} */
  List<MpsProcess> processes() throws IOException {
    List<MpsProcess> own = new ArrayList<>();
    for (MpsProcess process : MpsProcess.all()) {
      if (process.pipes().startsWith(directory.toString())) {
        own.add(process);
      }
    }
    return own;
  }

  /**
   * Stops the daemon if it was started. May be called again.
   *
   * @return why it had to be killed; empty if it stopped on request
   */
  public synchronized String stop() throws IOException, InterruptedException {
    if (!isStarted) {
      return "";
    }
    isStarted = false;
    Done quit = ask("quit");
    long beginNs = NanoClock.nanoTime();
    while (!processes().isEmpty() && (NanoClock.nanoTime() - beginNs) / 1e9 < GONE_SECONDS) {
      if (!quit.isOk()) {
        break;
      }
      NanoClock.sleepMillis(20);
    }
    List<MpsProcess> left = processes();
    for (MpsProcess process : left) {
      ProcessHandle.of(process.pid()).ifPresent(ProcessHandle::destroyForcibly);
    }
    return left.isEmpty() ? "" : "processes " + left + " were left after quit: " + quit.why();
  }

  /** Stops the daemon when this process terminates. */
  public void stopNow() {
    try {
      String ignored = stop();
    } catch (IOException e) {
      System.err.println("MPS cannot be stopped: " + e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
