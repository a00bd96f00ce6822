package dev.vgpu.bench.colocation;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ColocationFiguresTest {
  private static final int[] TRAINERS = {1, 3};
  private static final ColocationOptions OPTIONS =
      ColocationOptions.take(new ArrayList<>(List.of("--trace", "code", "--kernels=mixed")), true);

  @Test
  void jsonHasTheKeysThatOthersReadAndTakesTheWorse() {
    JsonNode json = new ObjectMapper().valueToTree(figures().json(OPTIONS));
    for (String mode : List.of("alone", "uncontrolled", "ours", "strict")) {
      for (String key :
          List.of(
              "online_p50_ms",
              "online_p99_ms",
              "online_p99_ratio",
              "offline_of_ideal",
              "switches_per_s")) {
        assertThat(json.path("modes").path(mode).path("20").path(key).isNumber())
            .as("%s %s", mode, key)
            .isTrue();
      }
    }
    JsonNode ours = json.path("modes").path("ours").path("20");
    assertThat(ours.path("online_p99_ratio").asDouble()).isEqualTo(3);
    assertThat(ours.path("offline_of_ideal").asDouble()).isEqualTo(0.5);
    assertThat(ours.path("one").path("online_p99_ratio").asDouble()).isEqualTo(1);
    assertThat(ours.path("one").path("offline_of_ideal").asDouble()).isEqualTo(0.75);
    assertThat(json.path("longest_offline_kernel_ms").asDouble()).isEqualTo(9.5);
    assertThat(json.path("trace").asText()).isEqualTo("code");
  }

  @Test
  void textNamesAllModes() {
    String text = new ColocationText(List.of(load()), TRAINERS).text(OPTIONS, replayed());
    assertThat(text).contains("alone, again", "uncontrolled, 3 offline", "strict, 1 offline");
  }

  @Test
  void plotReadsWhatJsonSays(@TempDir Path directory) throws IOException {
    Path file = directory.resolve("result.json");
    Files.writeString(file, new ObjectMapper().writeValueAsString(figures().json(OPTIONS)));
    assertThat(ColocationPlot.svg(List.of(file, file)))
        .startsWith("<svg")
        .contains(">3.00<", ">0.75<", "trace code")
        .endsWith("</svg>\n");
  }

  private static ColocationFigures figures() {
    return new ColocationFigures(List.of(load()), TRAINERS, replayed());
  }

  private static Map<String, String> replayed() {
    return Map.of("20", "all of it");
  }

  private static Colocation.Load load() {
    Map<Colocation.Cell, Outcome> outcomes = new HashMap<>();
    outcomes.put(new Colocation.Cell(Mode.ALONE, 0), outcome(10, 0));
    for (Mode mode : List.of(Mode.UNCONTROLLED, Mode.OURS, Mode.STRICT)) {
      outcomes.put(new Colocation.Cell(mode, 1), outcome(10, 600));
      outcomes.put(new Colocation.Cell(mode, 3), outcome(30, 400));
    }
    return new Colocation.Load(20, new Arrivals(List.of(), 1_000), outcomes, outcome(10, 0), 5);
  }

  private static Outcome outcome(double latencyMs, double offlineNs) {
    Outcome outcome = new Outcome();
    outcome.online(List.of(latencyMs), 0, 200);
    outcome.window(1_000, offlineNs, 9_500_000);
    return outcome;
  }
}
