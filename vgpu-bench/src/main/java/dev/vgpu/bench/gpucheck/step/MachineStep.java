package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.ElfLibrary;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Outcome;
import dev.vgpu.bench.gpucheck.machine.Place;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;

/** The machine, the GPU according to nvidia-smi, doctor's findings, and the driver's behaviour. */
public final class MachineStep implements Step {
  private static final double SECONDS = 15;

  /** Results may be shown to others: a card's serial number is not for them. */
  private static final Pattern SERIAL = Pattern.compile("(Serial Number *:).*");

  /** The commands to run as they are; a missing one is reported as missing. */
  private static final Map<String, List<String>> QUESTIONS = questions();

  private static Map<String, List<String>> questions() {
    Map<String, List<String>> all = new LinkedHashMap<>();
    all.put("uname", List.of("uname", "-a"));
    all.put("libc", shell("ldd --version 2>&1 | head -n 1"));
    all.put("compiler", shell("cc --version 2>&1 | head -n 1"));
    all.put("nvcc", shell("nvcc --version 2>&1 | tail -n 2"));
    all.put("python", shell("python3 --version 2>&1"));
    all.put("kernel_driver", shell("cat /proc/driver/nvidia/version 2>&1"));
    all.put("device_files", shell("ls -l /dev/nvidia* 2>&1"));
    all.put("libraries", shell("ldconfig -p 2>&1 | grep -E 'libcuda|libnvidia-ml|libnvidia-ptx'"));
    all.put("cuda_environment", shell("env | grep -E '^(CUDA|NVIDIA|LD_)' | sort"));
    all.put("mounts", shell("grep -i nvidia /proc/mounts 2>&1"));
    all.put("limits", shell("ulimit -a 2>&1"));
    all.put(
        "memory", shell("grep -E 'MemTotal|MemAvail|Shmem:' /proc/meminfo; df -h /tmp /dev/shm"));
    all.put("cuda_checkpoint", shell("command -v cuda-checkpoint || echo none"));
    all.put("nvidia_smi_q", List.of("nvidia-smi", "-q"));
    return Collections.unmodifiableMap(all);
  }

  private static List<String> shell(String line) {
    return List.of("sh", "-c", line);
  }

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    for (Map.Entry<String, List<String>> question : QUESTIONS.entrySet()) {
      Done done = Done.run(question.getValue(), variables -> {}, place.work(), SECONDS);
      String said = done.exitCode() == Done.NOT_RUN ? done.err() : done.out().strip();
      findings.at("machine").put(question.getKey(), SERIAL.matcher(said).replaceAll("$1 not kept"));
      findings.write();
    }
    for (String variable : List.of("VGPU_CUDA_DRIVER", "VGPU_NVML")) {
      findings.at("found").put(variable, String.valueOf(System.getenv(variable)));
    }
    driver(findings);
    doctor(place, findings, "doctor", List.of());
    // Whether vgpu finds the same driver as the C library's loader.
    boolean byItself =
        doctor(place, findings, "doctor_unaided", List.of("VGPU_CUDA_DRIVER", "VGPU_NVML"));
    findings.at("found").put("by_itself", byItself);
    if (!byItself) {
      findings.line(
          "vgpu does not find this driver by itself; VGPU_NVML and VGPU_CUDA_DRIVER help");
    }
    try (CheckNode node = CheckNode.open(place)) {
      Map<String, String> leased = node.lease("probe", place.quota(4, 40));
      probe(findings, "bare", node.program(CheckNode.BARE, SECONDS, "probe"));
      probe(findings, "vgpu", node.program(leased, SECONDS, "probe"));
    }
    JsonNode bare = findings.at("probe", "bare");
    findings.summary(
        "start %.0f ms, event step %.2f us, a 50 us spin takes %.1f us, queue of %d launches",
        bare.path("start_ms").asDouble(),
        bare.path("event_step_us").asDouble(),
        bare.path("spin_us").path("50").asDouble(),
        bare.path("queue_depth").asInt());
  }

  /** Whether a hook could intercept the driver's own calls, and its imports from the C library. */
  private static void driver(Findings findings) {
    String file = Objects.requireNonNullElse(System.getenv("VGPU_CUDA_DRIVER"), "");
    try {
      ElfLibrary library = ElfLibrary.read(Path.of(file));
      boolean hasIoctl = library.imports().contains("ioctl");
      ObjectNode into = findings.at("machine");
      into.putObject("driver_dynamic")
          .put("soname", library.soname())
          .put("symbolic", library.isSymbolic())
          .put("needed", String.join(" ", library.needed()));
      into.put("driver_imports", String.join(" ", library.imports()));
      findings.line(
          "driver %s: symbolic %s, imports ioctl %s, %d imports",
          library.soname(), library.isSymbolic(), hasIoctl, library.imports().size());
      findings.expect(
          "functions named ioctl that the driver imports",
          hasIoctl ? 1 : 0,
          1,
          1,
          "level 2 stays off");
    } catch (IOException e) {
      findings.line("the driver's file cannot be read: %s", String.valueOf(e.getMessage()));
    }
  }

  /** Whether doctor finds a GPU of a driver: neither the emulator's nor the host. */
  private static boolean doctor(
      Place place, Findings findings, String key, List<String> withoutVariables)
      throws InterruptedException, IOException {
    Path runDirectory = Files.createDirectories(place.work().resolve(key));
    List<String> command = new ArrayList<>(Place.vgpu());
    command.addAll(List.of("doctor", "--json"));
    Done done =
        Done.run(
            command,
            variables -> {
              withoutVariables.forEach(variables::remove);
              variables.put("VGPU_RUN_DIR", runDirectory.toString());
            },
            place.work(),
            SECONDS);
    JsonNode said = Outcome.parse(done.out());
    ObjectNode into = findings.at(key);
    into.put("exit_code", done.exitCode()).put("stderr", done.err()).set("said", said);
    findings.write();
    boolean real = false;
    for (JsonNode backend : said.path("backends")) {
      real |= backend.path("name").asText().equals("nvml") && backend.path("available").asBoolean();
      if (!backend.path("available").asBoolean()) {
        findings.line(
            "%s: %s is not available: %s",
            key, backend.path("name").asText(), backend.path("reason").asText());
      }
    }
    if (withoutVariables.isEmpty() && !done.isOk()) {
      findings.failure("vgpu doctor: %s", done.why());
    }
    return real;
  }

  private static void probe(Findings findings, String where, Done done) {
    if (done.isOk()) {
      findings.at("probe").set(where, done.json());
      findings.line("probe, %s: %s", where, done.json());
    } else {
      findings.at("probe", where).put("out", done.out()).put("err", done.err());
      findings.failure("probe, %s: %s %s", where, done.why(), done.out().strip());
    }
  }
}
