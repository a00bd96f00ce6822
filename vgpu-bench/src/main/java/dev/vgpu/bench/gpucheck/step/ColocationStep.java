package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.colocation.Colocation;
import dev.vgpu.bench.colocation.ColocationOptions;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Place;
import java.util.ArrayList;
import java.util.List;

/** The co-location benchmark in its short form, at one load. */
public final class ColocationStep implements Step {
  private static final int LOAD_PERCENT = 40;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    ColocationOptions options =
        ColocationOptions.take(
            new ArrayList<>(List.of("--load", Integer.toString(LOAD_PERCENT))), true);
    Colocation colocation = new Colocation(options, System.err::println);
    colocation.run();
    ObjectNode figures = new ObjectMapper().valueToTree(colocation.figures());
    findings.at().setAll(figures);
    colocation.text().lines().forEach(line -> findings.line("%s", line));
    JsonNode modes = findings.at("modes");
    String load = Integer.toString(LOAD_PERCENT);
    findings.summary(
        "load %s %%, 1 trainer: p99 ratio %.2f without vgpu, %.2f with; offline of ideal %.2f, %.2f",
        load,
        modes.at("/uncontrolled/" + load + "/one/online_p99_ratio").asDouble(),
        modes.at("/ours/" + load + "/one/online_p99_ratio").asDouble(),
        modes.at("/uncontrolled/" + load + "/one/offline_of_ideal").asDouble(),
        modes.at("/ours/" + load + "/one/offline_of_ideal").asDouble());
  }
}
