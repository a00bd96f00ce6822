package dev.vgpu.bench.gpucheck;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.bench.gpucheck.step.ChargedStep;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The findings of a check as settings of the emulator: {@code VGPU_EMULATOR=@FILE} makes it as slow
 * and as large as the GPU. A setting without a finding is left out. Confined to one thread.
 */
final class EmulatorSettings {
  /** A shorter pinning does not tell which calls wait for it. */
  private static final double LEAST_PIN_MS = 5;

  /** The depth at which the C program stops looking: this value means no limit was found. */
  private static final int DEEPEST = 8192;

  /** CUDA_ERROR_DEINITIALIZED. */
  private static final int DEINITIALIZED = 4;

  private final List<String> lines = new ArrayList<>();
  private final JsonNode steps;

  private EmulatorSettings(JsonNode steps) {
    this.steps = steps;
  }

  /**
   * {@return the file's text}
   *
   * @param results the check's JSON
   * @param name the name of the results' files
   */
  static String text(JsonNode results, String name) {
    EmulatorSettings settings = new EmulatorSettings(results.path("steps"));
    JsonNode gpu = results.path("gpu");
    settings.lines.add("# What " + name + ".json found, for the emulator: VGPU_EMULATOR=@" + name);
    settings.lines.add("# with .emulator behind it, and a VGPU_EMULATOR_DIR of its own.");
    if (!results.path("stand_in_driver").asText().isEmpty()) {
      settings.lines.add("# OVER A STAND-IN DRIVER, not a GPU.");
    }
    settings.gpu(gpu);
    settings.costs();
    settings.behaviour();
    settings.versions(gpu);
    return String.join("\n", settings.lines) + "\n";
  }

  private void gpu(JsonNode gpu) {
    put("model", gpu.path("gpu").asText().replace(',', ' '));
    put("memory", whole(gpu.path("memory_bytes"), ""));
    put("sms", whole(gpu.path("sms"), ""));
    put("capability", gpu.path("capability").asText());
    int cuda = gpu.path("cuda_version").asInt();
    put("cuda", cuda == 0 ? "" : cuda / 1000 + "." + cuda % 1000 / 10);
    put("copy-engines", positive(gpu.path("copy_engines")));
    put("grain", positive(steps.at("/machine/figures/probe/bare/one_byte_takes")));
    JsonNode depth = steps.at("/machine/figures/probe/bare/queue_depth");
    put("queue", depth.asInt() < DEEPEST ? positive(depth) : "");
    put("slice", whole(steps.at("/rm/figures/channels/own/slice_before_us"), "us"));
    long changeUs =
        steps.at("/shares/figures/1000 us, synced every kernel/2 bare/switch_us").asLong();
    put("switch", changeUs > 0 ? changeUs + "us" : "");
    put("context", whole(steps.at("/quota/figures/ledger/plain/context_bytes"), ""));
    put("module", whole(steps.at("/quota/figures/ledger/modules/module_bytes"), ""));
  }

  private void costs() {
    JsonNode calls = steps.at("/driver/figures/calls/bare");
    put("launch-cost", whole(calls.at("/launch/p50_ns"), "ns"));
    put("record-cost", whole(calls.at("/record_behind_launch/p50_ns"), "ns"));
    put("query-cost", whole(calls.at("/query/p50_ns"), "ns"));
    put("elapsed-cost", whole(calls.at("/elapsed/p50_ns"), "ns"));
    put("allocate-cost", whole(calls.at("/allocate/p50_ns"), "ns"));
    JsonNode pin = steps.at("/driver/figures/waits/bare/pin");
    JsonNode gib = pin.path("took_ms");
    double mib = steps.at("/driver/figures/waits/bare/pinned_mib").asDouble();
    if (gib.isNumber() && mib > 0) {
      put("pin-cost", String.format(Locale.ROOT, "%.0fns", gib.asDouble() * 1e6 * 1024 / mib));
    }
    JsonNode first = steps.at("/charged/figures/cold/first_ms");
    JsonNode again = steps.at("/charged/figures/cold/again_ms");
    if (first.isNumber() && again.isNumber()) {
      double each = (first.asDouble() - again.asDouble()) / ChargedStep.COLD_KERNELS;
      put("load", String.format(Locale.ROOT, "%.0fns", Math.max(0, each) * 1e6));
    }
  }

  private void behaviour() {
    JsonNode mode = steps.at("/driver/figures/calls/bare/is_lazy");
    put("lazy", mode.isNumber() ? mode.asInt() == 1 ? "on" : "off" : "");
    JsonNode pin = steps.at("/driver/figures/waits/bare/pin");
    double took = pin.path("took_ms").asDouble();
    if (took > LEAST_PIN_MS) {
      put("locks", pin.path("longest_us").asDouble() / 1e3 > took / 2 ? "on" : "off");
    }
    JsonNode legacy = steps.at("/driver/figures/streams/bare/legacy_event_waits");
    put("legacy-events", legacy.isNumber() ? legacy.asInt() == 1 ? "on" : "off" : "");
    JsonNode code = steps.at("/leave/figures/bare/handler/code_after_the_driver");
    put("teardown", code.isNumber() ? code.asInt() == DEINITIALIZED ? "on" : "off" : "");
    JsonNode thread = steps.at("/quota/figures/ledger/thread/told_by_thread");
    put("thread-pid", thread.isBoolean() ? thread.asBoolean() ? "on" : "off" : "");
  }

  /** These are not settings of VGPU_EMULATOR: a comment says how they are set. */
  private void versions(JsonNode gpu) {
    String driver = gpu.path("driver").asText();
    String nvml = gpu.path("nvml").asText();
    if (!driver.isEmpty()) {
      lines.add(
          "# export VGPU_EMULATOR_NVML=driver_version="
              + driver
              + (nvml.isEmpty() ? "" : ",nvml_version=" + nvml));
    }
  }

  private static String positive(JsonNode value) {
    return value.asLong() > 0 ? Long.toString(value.asLong()) : "";
  }

  private static String whole(JsonNode value, String unit) {
    return value.isNumber() ? value.asLong() + unit : "";
  }

  private void put(String name, String value) {
    if (!value.isEmpty()) {
      lines.add(name + "=" + value);
    }
  }
}
