package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.spi.GpuDriver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.ServiceLoader;

/** Compares durations and memory figures of the same programs on the GPU and on the emulator. */
public final class FidelityStep implements Step {
  private static final double SECONDS = 15;

  /** A program, and the figures to compare. */
  private record Compared(List<String> command, List<String> figures) {}

  private static List<Compared> all(boolean quick) {
    String seconds = quick ? "0.2" : "1";
    List<String> durations =
        List.of("/kernels_per_s", "/share_percent", "/launch_us/p50", "/round_us/p50");
    List<Compared> all = new ArrayList<>();
    for (String us : quick ? List.of("1000") : List.of("50", "1000", "10000")) {
      for (String sync : List.of("1", "0")) {
        all.add(
            new Compared(
                List.of("spin", "--us", us, "--sync", sync, "--seconds", seconds, "--json"),
                durations));
      }
    }
    all.add(
        new Compared(
            List.of(
                "spin",
                "--us",
                "200",
                "--streams",
                "4",
                "--sync",
                "8",
                "--seconds",
                seconds,
                "--json"),
            durations));
    all.add(
        new Compared(
            List.of("spin", "--us", "200", "--launch", "graph", "--seconds", seconds, "--json"),
            durations));
    all.add(
        new Compared(
            List.of(
                "burst",
                "--rate",
                "50",
                "--kernels",
                "10",
                "--us",
                "300",
                "--seconds",
                seconds,
                "--json"),
            List.of("/latency_ms/p50", "/latency_ms/p99")));
    for (String mode : List.of("malloc", "async", "vmm", "managed")) {
      all.add(
          new Compared(
              List.of("hoard", "--mode", mode, "--chunk", "2MiB", "--limit", "256MiB", "--json"),
              List.of("/bytes", "/allocations", "/total_before", "/free_before", "/free_after")));
    }
    return all;
  }

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    Map<String, String> emulator = emulator(place);
    int compared = 0;
    double worst = 1;
    try (Node gpu = Node.open(Map.of());
        Node emulated = Node.open(emulator)) {
      findings.line("%-52s%-18s%14s%14s%9s", "program", "figure", "GPU", "emulator", "ratio");
      for (Compared one : all(quick)) {
        List<String> command = new ArrayList<>(one.command());
        command.set(0, place.sample(command.get(0)).toString());
        String name = String.join(" ", one.command()).replace(" --json", "");
        JsonNode here = run(gpu, place, command, findings, name);
        JsonNode there = run(emulated, place, command, findings, name + " (emulator)");
        if (here.isMissingNode() || there.isMissingNode()) {
          continue;
        }
        for (String figure : one.figures()) {
          double ratio = tell(findings, name, figure, here.at(figure), there.at(figure));
          compared++;
          if (figure.equals("/kernels_per_s") || figure.equals("/latency_ms/p50")) {
            worst = Math.max(worst, Math.max(ratio, 1 / ratio));
          }
        }
      }
    }
    findings.summary("%d figures; rates and latencies at most %.2f times apart", compared, worst);
  }

  /** The emulator, with as much memory and as many SMs as the GPU. */
  private static Map<String, String> emulator(Place place) throws IOException {
    for (GpuDriver driver : ServiceLoader.load(GpuDriver.class)) {
      if (driver.name().equals("emulator")) {
        Path library = driver.cudaLibrary();
        Path state = Files.createDirectories(place.work().resolve("emulated"));
        JsonNode about = place.about();
        return Map.of(
            "LD_LIBRARY_PATH", Objects.requireNonNull(library.getParent()).toString(),
            "VGPU_CUDA_DRIVER", library.toString(),
            "VGPU_NVML", driver.nvmlLibrary().toString(),
            "VGPU_EMULATOR_DIR", state.toString(),
            "VGPU_EMULATOR",
                String.format(
                    Locale.ROOT,
                    "memory=%dMiB,sms=%d,capability=%s",
                    about.path("memory_bytes").asLong() >> 20,
                    about.path("sms").asInt(),
                    about.path("capability").asText()));
      }
    }
    throw new IllegalStateException("the emulator is not on the class path");
  }

  private static JsonNode run(
      Node node, Place place, List<String> command, Findings findings, String name)
      throws InterruptedException {
    Done done =
        Done.run(command, variables -> node.adapt(variables, Map.of()), place.work(), SECONDS);
    if (!done.isOk()) {
      findings.failure("%s: %s", name, done.why());
    }
    return done.json();
  }

  private static double tell(
      Findings findings, String name, String figure, JsonNode here, JsonNode there) {
    double ratio = there.asDouble() / here.asDouble();
    ObjectNode into = findings.at(name, figure.substring(1));
    into.put("gpu", here.asDouble()).put("emulator", there.asDouble());
    findings.line(
        "%-52s%-18s%14.3f%14.3f%9.3f",
        name, figure.substring(1), here.asDouble(), there.asDouble(), ratio);
    return Double.isFinite(ratio) && ratio > 0 ? ratio : 1;
  }
}
