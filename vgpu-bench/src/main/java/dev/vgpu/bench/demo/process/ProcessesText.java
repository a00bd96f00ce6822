package dev.vgpu.bench.demo.process;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.cli.console.TextTable;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The results of the demo's second part for a terminal. */
public final class ProcessesText {
  private static final String NONE = "-";
  private static final double BYTES_PER_MIB = 1L << 20;

  private final JsonNode json;

  /**
   * Creates the text.
   *
   * @param json the measurements
   */
  public ProcessesText(JsonNode json) {
    this.json = json;
  }

  /** {@return the table, then the sentences} */
  public List<String> lines() {
    List<String> lines = new ArrayList<>();
    lines.add("programs, one emulated device, " + backend());
    lines.addAll(table().lines());
    lines.add("");
    lines.addAll(sentences());
    return lines;
  }

  private TextTable table() {
    TextTable table =
        new TextTable(
            "program", "asked", "held by 3", "with online", "peak/quota MiB", "preempted");
    for (JsonNode tenant : json.path("tenants")) {
      int asked = tenant.path("asked_percent").asInt();
      table.row(
          tenant.path("name").asText()
              + " ("
              + tenant.path("class").asText().toLowerCase(Locale.ROOT)
              + ")",
          asked == 0 ? NONE : asked + " %",
          percent(tenant.path("held_three_percent")),
          percent(tenant.path("held_together_percent")),
          format(
              "%.0f/%.0f",
              tenant.path("memory_peak_bytes").asLong() / BYTES_PER_MIB,
              tenant.path("memory_quota_bytes").asLong() / BYTES_PER_MIB),
          tenant.path("preemptions").asText());
    }
    return table;
  }

  /** {@return sentences that interpret the figures} */
  public List<String> sentences() {
    JsonNode alone = json.path("online_alone").path("latency_ms");
    JsonNode beside = json.path("online_beside").path("latency_ms");
    JsonNode hoard = json.path("hoard");
    List<String> sentences = new ArrayList<>();
    sentences.add(howItIsShared());
    sentences.add(
        format(
            "The online program's requests, %.1f ms of work each, took %.1f ms (p50) and %.1f ms"
                + " (p99) alone, and %.1f and %.1f ms beside the three offline programs%s.",
            json.path("online_alone").path("work_ms").asDouble(),
            alone.path("p50").asDouble(),
            alone.path("p99").asDouble(),
            beside.path("p50").asDouble(),
            beside.path("p99").asDouble(),
            isSpatial() ? "" : ", which it preempts"));
    sentences.add(
        format(
            "A fifth program that allocates until it is refused got %.1f MiB of its quota of"
                + " %.0f MiB (its context takes the rest), then %s.",
            hoard.path("bytes").asLong() / BYTES_PER_MIB,
            hoard.path("quota_bytes").asLong() / BYTES_PER_MIB,
            hoard.path("refusal").asText()));
    if (json.path("machine_was_busy").asBoolean()) {
      sentences.add(
          format(
              "BUT this machine was busy: meanwhile other programs used %.0f %% of its processors,"
                  + " and its hypervisor withheld %.0f %%. Run the demo again when it is quiet.",
              json.path("other_programs_cpu_percent").asDouble(),
              json.path("stolen_cpu_percent").asDouble()));
    }
    return sentences;
  }

  private String backend() {
    return json.path("tenants").path(0).path("backend").asText();
  }

  private boolean isSpatial() {
    return !backend().equals(DemoBackend.HOOK.backendName());
  }

  private String howItIsShared() {
    if (!isSpatial()) {
      return "Backend "
          + backend()
          + ": unmodified programs took turns, and the GPU's time as the table says.";
    }
    return backend().equals(DemoBackend.MIG.backendName())
        ? "Backend mig: unmodified programs had a MIG instance each, and took no turns. Held is the"
            + " part of all time in which each had work on its own."
        : "Backend mps: unmodified programs were clients of MPS, and took no turns. Held is the"
            + " part of all time in which each had work on the GPU. The stand-in for MPS gives no"
            + " program compute units of its own: the emulated GPU switches between these programs"
            + " by itself, so the shares asked for do not show; what shows is that the quotas"
            + " hold.";
  }

  private static String percent(JsonNode value) {
    return value.isNumber() ? format("%.1f %%", value.asDouble()) : NONE;
  }

  private static String format(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
