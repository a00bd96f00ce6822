package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Place;
import java.util.List;
import java.util.Map;

/**
 * What single calls of the driver cost the host, how long other calls delay an event query, and
 * which streams' work waits behind which; bare and under a virtual GPU.
 */
public final class DriverStep implements Step {
  private static final double SECONDS = 20;
  private static final List<String> STREAMS = List.of("per_thread", "blocking", "non_blocking");

  /** The value in the program: within the in-flight bound of a tenant that is alone. */
  private static final String SHORTER_MS = "8";

  /** Beyond that bound. */
  private static final String LONGER_MS = "100";

  /** A process without a heartbeat for this long counts as stopped, even if it runs. */
  private static final double COUNTS_AS_STOPPED_US = 60_000;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    try (CheckNode node = CheckNode.open(place)) {
      Map<String, String> leased = node.lease("driver", place.quota(4, 40));
      calls(node, findings, leased);
      waits(node, findings, leased, quick ? "64" : "1024");
      streams(node, findings, leased, quick);
    }
    JsonNode calls = findings.at("calls", "bare");
    findings.summary(
        "p50 of a launch %.2f us, a record %.2f, a query %.2f, an elapsed time %.2f; a query waits"
            + " %.1f ms for a pinning of %.0f ms, %.1f ms for a first launch",
        us(calls, "launch"),
        us(calls, "record"),
        us(calls, "query"),
        us(calls, "elapsed"),
        findings.at("waits", "bare", "pin").path("longest_us").asDouble() / 1e3,
        findings.at("waits", "bare", "pin").path("took_ms").asDouble(),
        findings.at("waits", "bare", "first_launch").path("longest_us").asDouble() / 1e3);
  }

  private static double us(JsonNode calls, String name) {
    return calls.path(name).path("p50_ns").asDouble() / 1e3;
  }

  /** The program's JSON; a missing node if it failed. */
  private static JsonNode take(
      CheckNode node, Findings findings, String where, Map<String, String> leased, String... mode)
      throws InterruptedException {
    Done done = node.program(leased, SECONDS, mode);
    JsonNode said = done.json();
    findings.at(mode[0]).set(where, said);
    if (!done.isOk()) {
      findings.failure("%s, %s: %s %s", mode[0], where, done.why(), done.out().strip());
    }
    return said;
  }

  private static void calls(CheckNode node, Findings findings, Map<String, String> leased)
      throws InterruptedException {
    JsonNode bare = take(node, findings, "bare", CheckNode.BARE, "calls");
    JsonNode held = take(node, findings, "vgpu", leased, "calls");
    findings.line(
        "%-26s%12s%12s%18s%12s", "one call, us", "bare p50", "p99", "under vgpu p50", "p99");
    bare.properties().stream()
        .filter(entry -> entry.getValue().isObject())
        .forEach(
            entry ->
                findings.line(
                    "%-26s%12.3f%12.3f%18.3f%12.3f",
                    entry.getKey(),
                    us(bare, entry.getKey()),
                    entry.getValue().path("p99_ns").asDouble() / 1e3,
                    us(held, entry.getKey()),
                    held.path(entry.getKey()).path("p99_ns").asDouble() / 1e3));
    findings.line(
        "questions about a stream that end its capture, and their codes: bare %s; under vgpu %s",
        bare.path("capture_ended_by").asText(), held.path("capture_ended_by").asText());
    findings.expect("a record's p50, us", us(bare, "record"), 0, 3, "batches have to be longer");
    findings.expect("a query's p50, us", us(bare, "query"), 0, 2, "the hook has to ask less");
    findings.expect(
        "an elapsed time's p50, us", us(bare, "elapsed"), 0, 3, "batches have to be longer");
    findings.expect(
        "asking whether a stream is captured and leaving it so, p50, us",
        us(bare, "is_capturing") + 2 * us(bare, "exchange_capture_mode"),
        0,
        0.5,
        "the hook has to keep account of captures by itself");
  }

  private static void waits(
      CheckNode node, Findings findings, Map<String, String> leased, String pinMib)
      throws InterruptedException {
    JsonNode bare = take(node, findings, "bare", CheckNode.BARE, "waits", pinMib);
    JsonNode held = take(node, findings, "vgpu", leased, "waits", pinMib);
    findings.at("waits", "bare").put("pinned_mib", Integer.parseInt(pinMib));
    findings.line(
        "%-26s%12s%14s%14s%20s",
        "a query of one thread", "took ms", "bare p50 us", "longest us", "under vgpu longest");
    double longest = 0;
    for (Map.Entry<String, JsonNode> entry : bare.properties()) {
      JsonNode row = entry.getValue();
      if (row.isObject()) {
        findings.line(
            "  beside %-17s%12.1f%14.2f%14.1f%20.1f",
            entry.getKey(),
            row.path("took_ms").asDouble(),
            row.path("p50_us").asDouble(),
            row.path("longest_us").asDouble(),
            held.path(entry.getKey()).path("longest_us").asDouble());
        longest = Math.max(longest, row.path("longest_us").asDouble());
      }
    }
    findings.expect(
        "the longest query, us",
        longest,
        0,
        COUNTS_AS_STOPPED_US,
        "the thread that beats may call nothing of the driver's");
    findings.expect(
        "a query without a context, code",
        bare.path("query_without_context").asDouble(-1),
        0,
        0,
        "the hook's thread has to push the context before it asks");
  }

  private static void streams(
      CheckNode node, Findings findings, Map<String, String> leased, boolean quick)
      throws InterruptedException {
    String[] mode = quick ? new String[] {"streams", "quick"} : new String[] {"streams"};
    JsonNode bare = take(node, findings, "bare", CheckNode.BARE, mode);
    JsonNode held = take(node, findings, "vgpu", leased, mode);
    findings.line(
        "%-44s%12s%12s", "a kernel beside another thread's, of a tenth", "bare ms", "under vgpu");
    for (String longMs : quick ? List.of(SHORTER_MS) : List.of(SHORTER_MS, LONGER_MS)) {
      beside(
          findings,
          longMs,
          bare.path("behind_ms").path(longMs),
          held.path("behind_ms").path(longMs));
    }
    double later = bare.path("later_ms").asDouble(-1);
    double heldLater = held.path("later_ms").asDouble(-1);
    findings.line(
        "a stream that waits for a word of a later kernel's: bare %.1f ms, under vgpu %.1f ms (-1:"
            + " for ever)",
        later, heldLater);
    if (later >= 0 && heldLater < 0) {
      findings.failure("under vgpu alone, a stream waits for ever for another one's later work");
    }
  }

  private static void beside(Findings findings, String longMs, JsonNode bare, JsonNode held) {
    double longer = Double.parseDouble(longMs);
    bare.properties()
        .forEach(
            entry ->
                findings.line(
                    "  of %3s ms, %-33s%12.1f%12.1f",
                    longMs,
                    entry.getKey(),
                    entry.getValue().asDouble(),
                    held.path(entry.getKey()).asDouble()));
    for (String kind : STREAMS) {
      double waited = held.path(kind).asDouble(longer);
      boolean isOfVgpu = bare.path(kind).asDouble() < longer / 2 && waited >= longer / 2;
      if (isOfVgpu && longMs.equals(SHORTER_MS)) {
        findings.failure(
            "under vgpu alone, work in %s streams waits %.1f ms for another thread's of %s ms",
            kind, waited, longMs);
      } else if (longMs.equals(LONGER_MS)) {
        findings.expect(
            "ms that a kernel in a " + kind + " stream takes beside one of " + longMs + " ms",
            waited,
            0,
            longer / 2,
            "the bound of what is in flight serialises streams with long kernels");
      }
    }
    findings.expect(
        "the control: ms in the legacy stream, which waits for a blocking one of " + longMs,
        bare.path("legacy").asDouble(),
        longer / 2,
        longer * 2,
        "these figures tell nothing");
  }
}
