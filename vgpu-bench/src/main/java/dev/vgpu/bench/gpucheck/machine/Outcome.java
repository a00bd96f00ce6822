package dev.vgpu.bench.gpucheck.machine;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * How a step ended. Immutable.
 *
 * @param state {@code ok}, {@code skipped}, {@code failed}, {@code timeout} or {@code not run}
 * @param seconds how long it ran
 * @param why what went wrong, in one line; empty if nothing did
 * @param found its findings
 * @param err the end of its standard error, and of the hook's log, if it failed
 */
public record Outcome(
    String state, double seconds, String why, JsonNode found, String err, String log) {
  private static final int MOST_CHARS = 300;
  private static final ObjectMapper JSON = new ObjectMapper();

  /** {@return the outcome of a step that was not begun} */
  public static Outcome notRun(String why) {
    return new Outcome("not run", 0, why, MissingNode.getInstance(), "", "");
  }

  /**
   * {@return how a step ended}
   *
   * @param starved how much of its time it did not get, in words; empty if it got all
   * @param faults the GPU's faults meanwhile, as NVML reported them
   */
  public static Outcome of(
      Done done, JsonNode found, String log, String starved, List<String> faults) {
    String why = found.path("failures").path(0).asText(done.isOk() ? "" : done.why());
    String state = "ok";
    if (done.exitCode() == Done.TIMED_OUT) {
      state = "timeout";
      why = done.why() + starved;
    } else if (!done.isOk() || found.isMissingNode()) {
      state = "failed";
    } else if (found.has(Findings.SKIPPED)) {
      state = "skipped";
      why = found.path(Findings.SKIPPED).asText();
    }
    if (!faults.isEmpty()) {
      state = state.equals("timeout") ? state : "failed";
      why = "the GPU reported " + faults + (why.isEmpty() ? "" : "; " + why);
    }
    return new Outcome(state, done.seconds(), firstLines(why), found, done.err(), log);
  }

  /** Shortened to one line. */
  private static String firstLines(String text) {
    String line = text.strip().replaceAll("\\s*\\n\\s*", " / ");
    return line.length() <= MOST_CHARS ? line : line.substring(0, MOST_CHARS) + "…";
  }

  /** {@return the JSON in a file; a missing node if there is none} */
  public static JsonNode read(Path file) {
    try {
      return JSON.readTree(file.toFile());
    } catch (IOException e) {
      return MissingNode.getInstance();
    }
  }

  /** {@return JSON parsed from a text; a missing node if it is not valid} */
  public static JsonNode parse(String text) {
    try {
      return JSON.readTree(text);
    } catch (JsonProcessingException e) {
      return MissingNode.getInstance();
    }
  }

  /** {@return the end of a file; empty if it cannot be read} */
  public static String tailOf(Path file) {
    try {
      return Done.tail(Files.readString(file));
    } catch (IOException e) {
      return "";
    }
  }

  /** {@return the lines of a file; none if it cannot be read} */
  public static List<String> linesOf(Path file) {
    try {
      return Files.readAllLines(file);
    } catch (IOException e) {
      return List.of();
    }
  }

  /** Whether nothing is wrong; a step that does not apply here is not wrong. */
  public boolean isOk() {
    return state.equals("ok") || state.equals("skipped");
  }
}
