package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Outcome;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.gpucheck.machine.RuntimeLibraries;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.request.MemorySize;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * Which driver other clients load, and whether they are limited: through the names of the driver,
 * the CUDA runtime alone, Numba, CuPy and JAX, as far as they are installed.
 */
public final class ClientsStep implements Step {
  private static final double SECONDS = 30;
  private static final List<String> PYTHON = List.of("numba", "cupy", "jax");
  private static final long MIB = 1 << 20;
  private static final double SETTLES_MS = 2_500;

  /** The accepted difference between NVML and the ledger for one process. */
  private static final long TOLERANCE = 64 * MIB;

  private int held;
  private int there;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    MemorySize quota = place.quota(8, 40);
    try (CheckNode node = CheckNode.open(place)) {
      Map<String, String> leased = node.lease("client", quota);
      int names = names(node, findings, leased);
      if (!place.isOverStandIn()) {
        Child observer =
            node.start(CheckNode.BARE, "observe", Long.toString(quota.bytes())).awaitReady();
        runtimes(place, node, findings, leased, observer, quota);
        python(place, node, findings, leased, observer, quota);
      } else {
        findings.line(
            "the CUDA runtime, Numba, CuPy and JAX: not run over a driver that stands in");
      }
      findings.summary(
          "%d names of the driver give the hook; of the CUDA runtime, Numba, CuPy, JAX %d are here,"
              + " and %d held",
          names, there, held);
    }
  }

  /** How many names load the hook under a virtual GPU. Loading another driver is a failure. */
  private static int names(CheckNode node, Findings findings, Map<String, String> leased)
      throws InterruptedException {
    String driver = Objects.requireNonNullElse(System.getenv("VGPU_CUDA_DRIVER"), "");
    Done bare = node.program(CheckNode.BARE, SECONDS, "names", driver);
    Done done = node.program(leased, SECONDS, "names", driver);
    findings.at("names").set("bare", bare.json());
    findings.at("names").set("vgpu", done.json());
    String hook = done.json().path("libcuda.so.1").asText();
    if (!done.isOk() || hook.equals(bare.json().path("libcuda.so.1").asText("none"))) {
      findings.failure("under vgpu libcuda.so.1 is not the hook: %s %s", hook, done.why());
      return 0;
    }
    int right = 0;
    for (Map.Entry<String, JsonNode> name : done.json().properties()) {
      String file = name.getValue().asText();
      findings.line("%-44s bare %s", name.getKey(), bare.json().path(name.getKey()).asText());
      findings.line("%-44s vgpu %s", "", file);
      if (file.equals(hook)) {
        right++;
      } else {
        findings.failure("%s goes past the hook: it gives %s", name.getKey(), file);
      }
    }
    return right;
  }

  private void runtimes(
      Place place,
      CheckNode node,
      Findings findings,
      Map<String, String> leased,
      Child observer,
      MemorySize quota)
      throws InterruptedException {
    List<Path> libraries = RuntimeLibraries.cudart(place.work());
    if (libraries.isEmpty()) {
      findings.line("libcudart: none here, in Python's packages or in /usr/local/cuda*");
    }
    for (Path library : libraries) {
      List<String> command =
          List.of(node.node().program().toString(), "cudart", library.toString());
      client(node, findings, "cudart " + library, command, leased, observer, quota);
    }
    Optional<Path> nvcc = Place.onPath("nvcc");
    if (nvcc.isEmpty()) {
      findings.line("nvcc: none in PATH, so no program with the runtime in itself");
      return;
    }
    Path program = place.work().resolve("runtime_client");
    String capability = place.about().path("capability").asText();
    Done done = RuntimeLibraries.compile(nvcc.get(), capability, place.work(), program);
    if (done.isOk()) {
      List<String> command = List.of(program.toString());
      client(node, findings, "cudart, static", command, leased, observer, quota);
    } else {
      findings.line("nvcc compiles nothing here: %s %s", done.why(), done.out().strip());
    }
  }

  private void python(
      Place place,
      CheckNode node,
      Findings findings,
      Map<String, String> leased,
      Child observer,
      MemorySize quota)
      throws InterruptedException {
    String python = Place.onPath("python3").map(Path::toString).orElse("");
    for (String name : PYTHON) {
      if (python.isEmpty()) {
        findings.line("%s: there is no python3", name);
        continue;
      }
      List<String> command = List.of(python, place.sample("clients.py").toString(), name);
      client(node, findings, name, command, leased, observer, quota);
    }
  }

  private void client(
      CheckNode node,
      Findings findings,
      String name,
      List<String> command,
      Map<String, String> leased,
      Child observer,
      MemorySize quota)
      throws InterruptedException {
    ObjectNode into = findings.at(name);
    double idle = observer.ask("read").number("now");
    long before = node.lease().path("gpu_ns").asLong();
    Child child = node.start(name, command, leased);
    JsonNode said = said(child);
    into.set("vgpu", said);
    if (said.has("absent")) {
      findings.line("%s: not here: %s", name, said.path("absent").asText());
      child.close();
      return;
    }
    there++;
    if (said.has("error")) {
      child.close();
      failed(node, findings, name, command, said.path("error").asText());
      return;
    }
    long nvml = settled(node, observer, idle);
    long ledger = node.memoryHeld();
    child.kill();
    node.awaitNothingHeld(5);
    double gpuMs = (node.lease().path("gpu_ns").asLong() - before) / 1e6;
    into.put("ledger_bytes", ledger).put("nvml_bytes", nvml).put("gpu_ms", gpuMs);
    findings.line(
        "%s %s: shown %.0f MiB of a quota of %.0f; ledger %.0f MiB, NVML %.0f MiB; %.2f ms of GPU"
            + " time",
        name,
        said.path("version").asText(),
        said.path("total").asDouble() / MIB,
        quota.bytes() / (double) MIB,
        ledger / (double) MIB,
        nvml / (double) MIB,
        gpuMs);
    List<String> wrong = wrong(said, quota.bytes(), ledger, nvml, gpuMs);
    wrong.forEach(each -> findings.failure("%s: %s", name, each));
    held += wrong.isEmpty() ? 1 : 0;
  }

  private static List<String> wrong(
      JsonNode said, long quota, long ledger, long nvml, double gpuMs) {
    List<String> wrong = new ArrayList<>();
    long total = said.path("total").asLong();
    if (total > quota || total == 0) {
      wrong.add("it is shown " + total + " bytes of a quota of " + quota);
    }
    if (said.has("works") && !said.path("works").asBoolean()) {
      wrong.add("it computes something else");
    }
    if (gpuMs <= 0) {
      wrong.add("nothing of its work is charged");
    }
    if (ledger == 0) {
      wrong.add("the ledger has nothing of it, not even its context");
    } else if (nvml > 0 && Math.abs(ledger - nvml) > TOLERANCE) {
      wrong.add("the ledger says " + ledger / MIB + " MiB, NVML " + nvml / MIB + " MiB");
    }
    return wrong;
  }

  /** A failure without vgpu as well is the machine's. */
  private static void failed(
      CheckNode node, Findings findings, String name, List<String> command, String why)
      throws InterruptedException {
    Child bare = node.start(name + ", bare", command, CheckNode.BARE);
    JsonNode said = said(bare);
    bare.close();
    findings.at(name).set("bare", said);
    if (said.has("error")) {
      findings.line(
          "%s fails without vgpu as well: %s %s", name, said.path("error").asText(), node.errors());
    } else {
      findings.failure("%s fails only under vgpu: %s %s", name, why, node.errors());
    }
  }

  /** The child's JSON; an object with "error" if there is none. */
  private static JsonNode said(Child child) throws InterruptedException {
    try {
      for (String line = child.line(); ; line = child.line()) {
        if (line.startsWith("{")) {
          return Outcome.parse(line);
        }
        if (line.startsWith("error ")) {
          return error(line);
        }
      }
    } catch (IllegalStateException e) {
      return error(String.valueOf(e.getMessage()));
    }
  }

  private static JsonNode error(String text) {
    return new ObjectMapper().createObjectNode().put("error", text);
  }

  private static long settled(CheckNode node, Child observer, double idle)
      throws InterruptedException {
    long beginNs = NanoClock.nanoTime();
    long nvml = 0;
    while ((NanoClock.nanoTime() - beginNs) / 1e6 < SETTLES_MS) {
      nvml = (long) (observer.ask("read").number("now") - idle);
      if (nvml > 0 && Math.abs(node.memoryHeld() - nvml) <= TOLERANCE) {
        break;
      }
      NanoClock.sleepMillis(20);
    }
    return nvml;
  }
}
