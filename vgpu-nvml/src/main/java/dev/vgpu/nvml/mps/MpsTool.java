package dev.vgpu.nvml.mps;

import dev.vgpu.VgpuException;
import dev.vgpu.files.TrustedFiles;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * {@code nvidia-cuda-mps-control}, the vendor's tool or a replacement. Each call runs a process
 * with a time limit. Immutable.
 *
 * @param file the tool
 * @param timeoutMs how long a call may take
 */
record MpsTool(Path file, long timeoutMs) {
  private static final long TIMEOUT_MS = 5_000;
  private static final int MOST_BYTES = 64 << 10;
  private static final String NAME = "nvidia-cuda-mps-control";

  /** The tool did not answer in time. */
  static final class HungException extends VgpuException {
    private static final long serialVersionUID = 1L;

    HungException(String message) {
      super(message);
    }
  }

  /**
   * The tool could not be run, for example for lack of processes: that says nothing of a daemon.
   */
  static final class NotRunException extends VgpuException {
    private static final long serialVersionUID = 1L;

    NotRunException(String message, Throwable cause) {
      super(message, cause);
    }
  }

  MpsTool(Path file) {
    this(file, TIMEOUT_MS);
  }

  /** {@return the machine's own tool: the one that a variable names, else the first in the path} */
  static Optional<Path> find(Map<String, String> environment) {
    String named = environment.get("VGPU_MPS_CONTROL");
    if (named != null && !named.isBlank()) {
      Path file = Path.of(named).toAbsolutePath();
      Optional<String> objection = TrustedFiles.objection(file);
      if (objection.isPresent()) {
        throw new VgpuException(
            "VGPU_MPS_CONTROL names a file that cannot be used: " + objection.get());
      }
      return Optional.of(file);
    }
    for (String directory : (environment.getOrDefault("PATH", "") + ":/usr/bin").split(":", -1)) {
      Path file = Path.of(directory.isEmpty() ? "." : directory).resolve(NAME);
      if (Files.isExecutable(file)) {
        return Optional.of(file.toAbsolutePath());
      }
    }
    return Optional.empty();
  }

  /** Starts a daemon, which keeps running. */
  void startDaemon(Map<String, String> environment) {
    String ignored = run(List.of(file.toString(), "-d"), environment, "");
  }

  /** Sends a command to a daemon. Returns its answer. */
  String command(Map<String, String> environment, String command) {
    return run(List.of(file.toString()), environment, command + "\n");
  }

  private String run(List<String> command, Map<String, String> environment, String input) {
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().putAll(environment);
    Path answer = null;
    Process process = null;
    try {
      // To a file, not a pipe: a daemon that keeps a pipe open would block the reader forever.
      answer = Files.createTempFile("vgpu-mps", ".txt");
      process = builder.redirectOutput(answer.toFile()).start();
      try (OutputStream to = process.getOutputStream()) {
        to.write(input.getBytes(StandardCharsets.UTF_8));
      } catch (IOException e) {
        // It exited without reading; its exit status says why.
      }
      if (!process.waitFor(timeoutMs, TimeUnit.MILLISECONDS)) {
        throw new HungException(
            "the MPS control daemon does not answer within "
                + timeoutMs
                + " ms: command="
                + (input.isBlank() ? "-d" : input.strip()));
      }
      String text = read(answer);
      if (process.exitValue() != 0) {
        throw new VgpuException(
            "the MPS control daemon cannot be commanded: exit="
                + process.exitValue()
                + " command="
                + (input.isBlank() ? "-d" : input.strip())
                + " said="
                + text.strip());
      }
      return text;
    } catch (IOException e) {
      throw new NotRunException("cannot run " + file + ": " + e.getMessage(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new NotRunException("interrupted while the MPS control daemon was commanded", e);
    } finally {
      if (process != null) {
        Process ignored = process.destroyForcibly();
      }
      delete(answer);
    }
  }

  private static String read(Path answer) throws IOException {
    byte[] bytes = Files.readAllBytes(answer);
    return new String(bytes, 0, Math.min(MOST_BYTES, bytes.length), StandardCharsets.UTF_8);
  }

  private static void delete(@Nullable Path answer) {
    if (answer != null) {
      boolean ignored = answer.toFile().delete();
    }
  }
}
