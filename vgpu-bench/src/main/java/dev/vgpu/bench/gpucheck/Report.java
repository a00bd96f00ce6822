package dev.vgpu.bench.gpucheck;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Outcome;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.harness.NanoClock;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/** The table and the JSON of a check, rewritten after each step. Confined to one thread. */
final class Report {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final CheckOptions options;
  private final JsonNode about;
  private final String version;
  private final Map<StepName, Outcome> outcomes = new LinkedHashMap<>();
  private double seconds;
  private boolean ended;

  Report(CheckOptions options, Place place, JsonNode about) {
    this.options = options;
    this.about = about;
    this.version = version(place);
  }

  /** The version of a bundle, from the bundle; the version of a checkout, from git. */
  private static String version(Place place) {
    try {
      return Files.readString(place.home().resolve("VERSION")).strip();
    } catch (IOException e) {
      return "checkout";
    }
  }

  String title() {
    return String.format(
        Locale.ROOT,
        "%s, driver %s, CUDA %d.%d, compute capability %s, %d SMs, %.1f GiB",
        about.path("gpu").asText("GPU"),
        driver(),
        about.path("cuda_version").asInt() / 1000,
        about.path("cuda_version").asInt() % 1000 / 10,
        about.path("capability").asText(),
        about.path("sms").asInt(),
        about.path("memory_bytes").asLong() / (double) (1L << 30));
  }

  private String driver() {
    return about.path("driver").asText("unknown");
  }

  private String fileName() {
    String name = "gpu-check-" + about.path("gpu").asText("gpu") + "-" + driver();
    String part = options.part == 0 ? "" : "-part" + options.part;
    return name.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9.]+", "-") + part;
  }

  void add(StepName step, Outcome outcome) {
    outcomes.put(step, outcome);
    System.err.printf(
        Locale.ROOT,
        "gpu-check: %s: %s, %.1f s%s%n",
        step.word(),
        outcome.state(),
        outcome.seconds(),
        outcome.why().isEmpty() ? "" : ": " + outcome.why());
  }

  /** Writes both files. */
  void write(double secondsSoFar) throws IOException {
    seconds = secondsSoFar;
    put(fileName() + ".json", json());
    put(fileName() + ".txt", text());
    put(fileName() + ".emulator", EmulatorSettings.text(JSON.readTree(json()), fileName()));
  }

  /** Writes both files for the last time. */
  void end(double secondsInAll) throws IOException {
    ended = true;
    write(secondsInAll);
    System.err.println(
        "gpu-check: written to " + options.out().resolve(fileName()) + ".{txt,json,emulator}");
  }

  private void put(String name, String content) throws IOException {
    Path fresh = options.out().resolve("." + name + ".new");
    Files.writeString(fresh, content, UTF_8);
    Files.move(fresh, options.out().resolve(name), StandardCopyOption.REPLACE_EXISTING);
  }

  boolean isGood() {
    return outcomes.values().stream().allMatch(outcome -> outcome.isOk());
  }

  String json() throws JsonProcessingException {
    ObjectNode root = JSON.createObjectNode();
    root.put("check", "gpu-check").put("version", version).put("ended", ended);
    root.put("at", NanoClock.now().truncatedTo(ChronoUnit.SECONDS).toString());
    root.put("seconds", Findings.rounded(seconds, 1)).put("quick", options.quick);
    root.put("part", options.part);
    root.put("stand_in_driver", options.driver().map(Path::toString).orElse(""));
    root.set("gpu", about);
    ObjectNode steps = root.putObject("steps");
    outcomes.forEach((step, outcome) -> steps.set(step.word(), json(outcome)));
    return JSON.writerWithDefaultPrettyPrinter().writeValueAsString(root) + "\n";
  }

  private static ObjectNode json(Outcome outcome) {
    ObjectNode step = JSON.createObjectNode();
    step.put("state", outcome.state()).put("seconds", Findings.rounded(outcome.seconds(), 1));
    if (!outcome.why().isEmpty()) {
      step.put("why", outcome.why());
    }
    if (outcome.found() instanceof ObjectNode found) {
      step.setAll(found);
    }
    if (!outcome.isOk() || !outcome.err().isBlank()) {
      step.put("stderr", outcome.err()).put("hook_log", outcome.log());
    }
    return step;
  }

  /** The table, then the lines of each step. */
  String text() {
    StringBuilder text = new StringBuilder();
    text.append("vgpu gpu-check, ").append(version).append('\n').append(title()).append('\n');
    if (options.driver().isPresent()) {
      text.append("OVER A STAND-IN DRIVER, not a GPU: ").append(options.driver().get());
      text.append('\n');
    }
    text.append(
        String.format(Locale.ROOT, "%n%-12s%-9s%7s  %s%n", "step", "", "s", "what came out"));
    for (StepName step : StepName.values()) {
      Outcome outcome = outcomes.get(step);
      if (outcome != null) {
        String summary = outcome.found().path("summary").asText("");
        int unexpected = outcome.found().path(Findings.UNEXPECTED).size();
        String said = outcome.why().isEmpty() ? summary : join(outcome.why(), summary);
        said = unexpected == 0 ? said : join(unexpected + " NOT AS EXPECTED", said);
        text.append(
            String.format(
                Locale.ROOT,
                "%-12s%-9s%7.1f  %s%n",
                step.word(),
                outcome.state(),
                outcome.seconds(),
                said));
      }
    }
    text.append(
        String.format(
            Locale.ROOT, "%s%.0f s in all%n", ended ? "" : "so far: not ended yet, ", seconds));
    outcomes.forEach((step, outcome) -> details(text, step, outcome));
    return text.toString();
  }

  private static String join(String why, String summary) {
    return summary.isEmpty() ? why : why + "; " + summary;
  }

  private static void details(StringBuilder text, StepName step, Outcome outcome) {
    text.append('\n').append(step.word()).append(": ").append(step.what()).append('\n');
    outcome
        .found()
        .path("lines")
        .forEach(line -> text.append("  ").append(line.asText()).append('\n'));
    outcome
        .found()
        .path("failures")
        .forEach(line -> text.append("  FAILED: ").append(line.asText()).append('\n'));
    outcome
        .found()
        .path(Findings.UNEXPECTED)
        .forEach(line -> text.append("  NOT AS EXPECTED: ").append(line.asText()).append('\n'));
    if (!outcome.isOk() && !outcome.err().isBlank()) {
      text.append("  standard error:\n").append(outcome.err().strip().indent(4));
    }
    if (!outcome.isOk() && !outcome.log().isBlank()) {
      text.append("  hook:\n").append(outcome.log().strip().indent(4));
    }
  }
}
