package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.MpsControl;
import dev.vgpu.bench.gpucheck.machine.MpsProcess;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.nvml.NvmlProvider;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * MPS in a separate directory: first its daemon, run with the vendor's tool, then a virtual GPU
 * based on it. Runs only if the GPU's compute mode permits it and no other MPS serves the GPU;
 * changes no setting of the card. Everything it starts is stopped, at the end of the step by force.
 */
public final class MpsStep implements Step {
  private static final String TOOL = "nvidia-cuda-mps-control";
  private static final double SECONDS = 20;
  private static final double CLIENT_SECONDS = 10;
  private static final int PERCENT = 50;
  private static final int CLIENT_PERCENT = 25;
  private static final double MIB = 1 << 20;
  private static final Path USUAL = Path.of("/tmp/nvidia-mps/control");

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    Optional<Path> tool = Place.onPath(TOOL);
    if (tool.isEmpty()) {
      findings.skip("there is no %s in PATH", TOOL);
      return;
    }
    NvmlProvider provider = new NvmlProvider();
    List<PhysicalGpu> gpus = provider.gpus();
    if (gpus.isEmpty()) {
      findings.failure("CUDA programs find a GPU here, and NVML none");
      return;
    }
    PhysicalGpu gpu = gpus.get(0);
    Optional<String> obstacle = obstacle(gpu, provider);
    if (obstacle.isPresent()) {
      findings.skip("%s", obstacle.get());
      return;
    }
    MpsControl control = new MpsControl(tool.get(), place.work().resolve("mps"), gpu.id());
    Thread atEnd = new Thread(control::stopNow, "end-of-mps");
    Runtime.getRuntime().addShutdownHook(atEnd);
    List<String> said = new ArrayList<>();
    try {
      said.add(byItself(place, findings, control));
    } finally {
      stop(findings, control);
      Runtime.getRuntime().removeShutdownHook(atEnd);
    }
    said.add(underVgpu(place, findings, gpu));
    findings.summary("%s", String.join("; ", said));
  }

  /** Why nothing may be started on this machine. */
  private static Optional<String> obstacle(PhysicalGpu gpu, NvmlProvider provider)
      throws IOException {
    if (gpu.unusableAsWhole().isPresent()) {
      return gpu.unusableAsWhole();
    }
    for (GpuReading reading : provider.readings()) {
      String mode = reading.properties().getOrDefault("compute_mode", "default");
      if (reading.gpu().equals(gpu.id()) && mode.equals("prohibited")) {
        return Optional.of("compute mode is prohibited: no program may run on the GPU");
      }
    }
    for (MpsProcess process : MpsProcess.all()) {
      if (process.mayServe(gpu.id())) {
        return Optional.of("MPS may serve this GPU already: pid " + process.pid());
      }
    }
    return Files.exists(USUAL)
        ? Optional.of("MPS of another container or user may serve this GPU already: " + USUAL)
        : Optional.empty();
  }

  // ---- the daemon by itself

  private static String byItself(Place place, Findings findings, MpsControl control)
      throws IOException, InterruptedException {
    ObjectNode into = findings.at("mps");
    long beginNs = NanoClock.nanoTime();
    Done start = control.start();
    double startMs = (NanoClock.nanoTime() - beginNs) / 1e6;
    into.put("start_ms", Findings.rounded(startMs, 1));
    if (!start.isOk()) {
      findings.failure("the MPS control daemon does not start: %s %s", start.why(), start.out());
      return "no daemon";
    }
    answer(findings, control, "set_default_active_thread_percentage " + PERCENT);
    String percent = answer(findings, control, "get_default_active_thread_percentage");
    if (!percent.matches("[0-9]{1,3}(\\.[0-9]*)?") || Double.parseDouble(percent) != PERCENT) {
      findings.failure("the daemon was told %d %% and says '%s'", PERCENT, percent);
    }
    try (Node node = Node.open(Map.of())) {
      withClient(place, findings, control, node);
    }
    findings.line("MPS control daemon: started in %.0f ms", startMs);
    return String.format(
        Locale.ROOT,
        "daemon in %.0f ms; a client with %d %% sees %d of %d SMs",
        startMs,
        CLIENT_PERCENT,
        into.path("client_sms").asInt(),
        place.about().path("sms").asInt());
  }

  private static void withClient(Place place, Findings findings, MpsControl control, Node node)
      throws IOException, InterruptedException {
    ObjectNode into = findings.at("mps");
    Map<String, String> client = new HashMap<>(control.client());
    client.putAll(NvmlStep.here());
    client.put("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", Integer.toString(CLIENT_PERCENT));
    Done about = program(place, node, client, List.of(node.program().toString(), "about"));
    into.put("client_sms", about.json().path("sms").asInt());
    into.put("all_sms", place.about().path("sms").asInt());
    if (!about.isOk()) {
      findings.failure("a client of MPS fails: %s %s", about.why(), about.out().strip());
    }
    Map<String, String> bounded = new HashMap<>(client);
    MemorySize limit = place.quota(2, 30);
    bounded.put("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=" + (limit.bytes() >> 20) + "M");
    Done fill = program(place, node, bounded, place.hoard(2 * limit.bytes(), "--least", "2MiB"));
    long held = fill.json().path("bytes").asLong();
    into.put("limit_bytes", limit.bytes()).put("held_bytes", held);
    findings.line(
        "a client with a limit of %.0f MiB held %.0f MiB, then: %s",
        limit.bytes() / MIB, held / MIB, fill.json().path("refusal").asText(fill.why()));
    Child holder =
        node.start(
            "hoard",
            new ProcessBuilder(place.hoard(limit.bytes() / 4, "--hold", "60")),
            new HashMap<>(client));
    String ignored = holder.line();
    long server = server(findings, control);
    into.put("server", server);
    boolean isListed = server > 0 && awaitClient(findings, control, server, holder.pid());
    into.put("client_is_listed", isListed);
    if (server == 0) {
      findings.failure("no MPS server has come for a client that runs");
    } else if (!isListed) {
      findings.line("the client is not listed by its number: pid namespaces differ");
    }
    holder.kill();
  }

  private static long server(Findings findings, MpsControl control) throws InterruptedException {
    String list = answer(findings, control, "get_server_list");
    if (list.isEmpty()) {
      // The stand-in does not start a server by itself.
      answer(findings, control, "start_server -uid " + uid());
      list = answer(findings, control, "get_server_list");
    }
    String first = list.lines().findFirst().orElse("").strip();
    return first.matches("[1-9][0-9]{0,9}") ? Long.parseLong(first) : 0;
  }

  private static String uid() {
    try {
      return Files.getAttribute(Path.of("/proc/self"), "unix:uid").toString();
    } catch (IOException e) {
      return "0";
    }
  }

  private static boolean awaitClient(
      Findings findings, MpsControl control, long server, long client) throws InterruptedException {
    long beginNs = NanoClock.nanoTime();
    String list = "";
    while ((NanoClock.nanoTime() - beginNs) / 1e9 < CLIENT_SECONDS) {
      list = control.ask("get_client_list " + server).out();
      if (list.lines().map(String::strip).anyMatch(Long.toString(client)::equals)) {
        return true;
      }
      NanoClock.sleepMillis(50);
    }
    findings.line("clients of server %d: %s; ours is %d", server, list.strip(), client);
    return false;
  }

  private static Done program(
      Place place, Node node, Map<String, String> environment, List<String> command)
      throws InterruptedException {
    return Done.run(
        command, variables -> node.adapt(variables, environment), place.work(), SECONDS);
  }

  /** Sends a command, and records the answer. */
  private static String answer(Findings findings, MpsControl control, String command)
      throws InterruptedException {
    Done done = control.ask(command);
    String said = done.out().strip();
    findings.at("mps", "answers").put(command, done.isOk() ? said : done.why() + " " + said);
    findings.write();
    if (!done.isOk()) {
      findings.failure("the daemon refuses '%s': %s %s", command, done.why(), said);
    }
    return said;
  }

  private static void stop(Findings findings, MpsControl control)
      throws IOException, InterruptedException {
    long beginNs = NanoClock.nanoTime();
    String byForce = control.stop();
    double ms = (NanoClock.nanoTime() - beginNs) / 1e6;
    findings.at("mps").put("stop_ms", Findings.rounded(ms, 1));
    findings.line("stopped in %.0f ms", ms);
    if (!byForce.isEmpty()) {
      findings.failure("MPS had to be ended by force: %s", byForce);
    }
  }

  // ---- a virtual GPU that stands on it

  private static String underVgpu(Place place, Findings findings, PhysicalGpu gpu)
      throws IOException, InterruptedException {
    Path run = Files.createDirectories(place.work().resolve("mps-run"));
    MemorySize quota = place.quota(2, 30);
    List<String> command = new ArrayList<>(Place.vgpu());
    command.addAll(
        List.of("run", "--gpu", gpu.id().value(), "--memory", (quota.bytes() >> 20) + "MiB"));
    command.addAll(
        List.of(
            "--compute",
            Integer.toString(CLIENT_PERCENT),
            "--policy",
            "fixed",
            "--require",
            "compute:spatial",
            "--"));
    command.addAll(place.hoard(2 * quota.bytes(), "--least", "1MiB"));
    Done done =
        Done.run(
            command,
            variables -> variables.put("VGPU_RUN_DIR", run.toString()),
            place.work(),
            SECONDS);
    JsonNode said = done.json();
    long held = said.path("bytes").asLong();
    findings
        .at("vgpu")
        .put("exit_code", done.exitCode())
        .put("quota_bytes", quota.bytes())
        .put("stderr", done.err())
        .set("said", said);
    findings.line(
        "under vgpu, quota %.0f MiB: held %.0f MiB, then %s",
        quota.bytes() / MIB, held / MIB, said.path("refusal").asText(done.why()));
    if (!done.isOk()) {
      findings.failure("a virtual GPU by MPS: %s", done.why());
    } else if (held > quota.bytes()) {
      findings.failure("%d bytes were held above a quota of %d", held, quota.bytes());
    }
    List<MpsProcess> left =
        MpsProcess.all().stream()
            .filter(process -> process.pipes().startsWith(run.toString()))
            .toList();
    for (MpsProcess process : left) {
      ProcessHandle.of(process.pid()).ifPresent(ProcessHandle::destroyForcibly);
    }
    if (!left.isEmpty()) {
      findings.failure("vgpu left processes of MPS behind: %s", left);
    }
    return String.format(
        Locale.ROOT, "under vgpu %.0f of %.0f MiB", held / MIB, quota.bytes() / MIB);
  }
}
