package dev.vgpu.bench.gpucheck.machine;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import dev.vgpu.bench.harness.NanoClock;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A program that has ended or was terminated. Immutable.
 *
 * @param exitCode its exit code; {@link #TIMED_OUT} if it was terminated, {@link #NOT_RUN} if it
 *     could not be started
 * @param seconds how long it ran
 * @param out its standard output
 * @param err the end of its standard error
 */
public record Done(int exitCode, double seconds, String out, String err) {
  /** The exit code of a program that was terminated at its limit. */
  public static final int TIMED_OUT = 124;

  /** The exit code of a program that could not be started. */
  public static final int NOT_RUN = 127;

  private static final int ERR_CHARS = 2_000;
  private static final ObjectMapper JSON = new ObjectMapper();

  /**
   * Runs a program to its end.
   *
   * @param command the program and its arguments
   * @param environment changes this process's environment to the program's
   * @param directory for files with its output
   * @param limitSeconds the program is killed after that
   * @throws InterruptedException if this thread is interrupted
   */
  public static Done run(
      List<String> command,
      Consumer<Map<String, String>> environment,
      Path directory,
      double limitSeconds)
      throws InterruptedException {
    ProcessBuilder builder = new ProcessBuilder(command);
    environment.accept(builder.environment());
    long beginNs = NanoClock.nanoTime();
    File out = null;
    File err = null;
    try {
      out = Files.createTempFile(directory, "program", ".out").toFile();
      err = Files.createTempFile(directory, "program", ".err").toFile();
      Process process =
          builder
              .redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")))
              .redirectOutput(out)
              .redirectError(err)
              .start();
      boolean ended = process.waitFor((long) (limitSeconds * 1e3), TimeUnit.MILLISECONDS);
      if (!ended) {
        process.destroyForcibly().waitFor(5, TimeUnit.SECONDS);
      }
      double seconds = (NanoClock.nanoTime() - beginNs) / 1e9;
      return new Done(ended ? process.exitValue() : TIMED_OUT, seconds, text(out), tail(text(err)));
    } catch (IOException e) {
      return new Done(NOT_RUN, 0, "", String.valueOf(e.getMessage()));
    } finally {
      delete(out);
      delete(err);
    }
  }

  private static void delete(@Nullable File file) {
    if (file != null && !file.delete()) {
      file.deleteOnExit();
    }
  }

  /** Decodes any bytes that a program writes. */
  private static String text(File file) throws IOException {
    return new String(Files.readAllBytes(file.toPath()), UTF_8);
  }

  static String tail(String text) {
    return text.length() <= ERR_CHARS ? text : "…" + text.substring(text.length() - ERR_CHARS);
  }

  /** {@return whether its exit code is 0} */
  public boolean isOk() {
    return exitCode == 0;
  }

  /** {@return the last line of its output that is a JSON object; otherwise a missing node} */
  public JsonNode json() {
    String[] lines = out.split("\n", -1);
    for (int i = lines.length - 1; i >= 0; i--) {
      if (lines[i].startsWith("{")) {
        try {
          return JSON.readTree(lines[i]);
        } catch (JsonProcessingException e) {
          return MissingNode.getInstance();
        }
      }
    }
    return MissingNode.getInstance();
  }

  /** {@return why it failed, in one line} */
  public String why() {
    String last = err.strip();
    last = last.substring(last.lastIndexOf('\n') + 1);
    return exitCode == TIMED_OUT
        ? "it did not end in " + Math.round(seconds) + " s" + (last.isEmpty() ? "" : ": " + last)
        : "exit code " + exitCode + (last.isEmpty() ? "" : ": " + last);
  }
}
