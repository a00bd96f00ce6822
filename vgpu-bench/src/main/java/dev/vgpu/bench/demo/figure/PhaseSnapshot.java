package dev.vgpu.bench.demo.figure;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * The server's answer to {@code GET /demo/phase}. Immutable.
 *
 * @param elapsedNs nanoseconds since the phase began
 * @param tenants the tenants of the device
 * @param spans when the device was used, and by which tenant
 */
public record PhaseSnapshot(long elapsedNs, List<Tenant> tenants, List<Span> spans) {
  /**
   * A model or a job.
   *
   * @param name its name
   * @param percent its share; 0 for best effort
   * @param items texts embedded and delivered
   * @param calls calls on the device
   * @param preemptions calls that were cancelled for other tenants
   * @param memoryPeakBytes the peak of its calls' memory budgets together
   * @param quotaBytes the most that those budgets may be together
   */
  public record Tenant(
      String name,
      int percent,
      long items,
      long calls,
      long preemptions,
      long memoryPeakBytes,
      long quotaBytes) {}

  /** {@return what the server has told} */
  public static PhaseSnapshot of(JsonNode json) throws IOException {
    List<Tenant> tenants = new ArrayList<>();
    for (JsonNode tenant : json.path("tenants")) {
      tenants.add(
          new Tenant(
              tenant.path("name").asText(),
              tenant.path("percent").asInt(),
              tenant.path("items").asLong(),
              tenant.path("calls").asLong(),
              tenant.path("preemptions").asLong(),
              tenant.path("memoryPeakBytes").asLong(),
              tenant.path("quotaBytes").asLong()));
    }
    List<Span> spans = new ArrayList<>();
    for (JsonNode span : json.path("spans")) {
      int tenant = span.path(0).asInt(-1);
      if (tenant < 0 || tenant >= tenants.size()) {
        throw new IOException("the server sent a span of an unknown tenant: " + span);
      }
      spans.add(new Span(tenant, span.path(1).asLong(), span.path(2).asLong()));
    }
    if (!json.path("elapsedNs").isNumber()) {
      throw new IOException("the server sent no elapsedNs");
    }
    return new PhaseSnapshot(json.path("elapsedNs").asLong(), tenants, spans);
  }
}
