package dev.vgpu.bench.command;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.Signals;
import dev.vgpu.spi.GpuDriver;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.ServiceLoader;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code vgpu gpu-check} with the emulator's driver in place of a GPU's, and without a GPU. */
class GpuCheckIT {
  private static final Path HOME = Path.of(System.getProperty("vgpu.home", ".."));
  private static final long TIMEOUT_SECONDS = 300;

  /** Several times the default: a step may take longer on a machine that other tests use too. */
  private static final String BUDGET = "4000";

  @TempDir private static Path programs;

  @TempDir private Path directory;

  /** Where the check creates its working directory: a short path, because it holds sockets. */
  private final Path temporary = Path.of("/tmp", "vc" + ProcessHandle.current().pid());

  @BeforeEach
  void makeTemporary() throws IOException {
    Files.createDirectories(temporary);
  }

  @AfterEach
  void removeTemporary() throws IOException {
    try (Stream<Path> files = Files.walk(temporary)) {
      files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    }
  }

  @BeforeAll
  static void buildPrograms() throws IOException, InterruptedException {
    Node.buildProgram(programs);
    Path source = programs.resolve("nvidia_smi.c");
    try (InputStream stream = GpuCheckIT.class.getResourceAsStream("nvidia_smi.c")) {
      Files.copy(Objects.requireNonNull(stream), source);
    }
    String compiler = Objects.requireNonNullElse(System.getenv("CC"), "cc");
    Process cc =
        new ProcessBuilder(
                compiler,
                "-std=gnu11",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-o",
                programs.resolve("nvidia-smi").toString(),
                source.toString(),
                "-ldl")
            .inheritIO()
            .start();
    assertThat(cc.waitFor()).isZero();
  }

  /** The output of a process, and its exit code. */
  private record Ended(int exitCode, String out, String err) {}

  private Ended run(Map<String, String> environment, List<String> command)
      throws IOException, InterruptedException {
    Path out = directory.resolve("out");
    Path err = directory.resolve("err");
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().keySet().removeIf(name -> name.startsWith("VGPU_"));
    builder.environment().put("VGPU_HOME", HOME.toString());
    builder.environment().put("VGPU_BENCH_PROGRAM", program());
    builder.environment().putAll(environment);
    Process process = builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
    boolean ended = process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    process.destroyForcibly().waitFor();
    assertThat(ended).as("%s%s", Files.readString(out), Files.readString(err)).isTrue();
    return new Ended(
        process.exitValue(), Files.readString(out, UTF_8), Files.readString(err, UTF_8));
  }

  private static String program() {
    return programs.resolve("gpu_program").toString();
  }

  private Ended check(Map<String, String> environment, String... arguments)
      throws IOException, InterruptedException {
    return run(environment, command(arguments));
  }

  private List<String> command(String... arguments) throws IOException {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home", ""), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-Djava.io.tmpdir=" + temporary,
                "-cp",
                System.getProperty("java.class.path", ""),
                "dev.vgpu.bench.Bench",
                "gpu-check",
                "--driver",
                driver().toString(),
                "--out",
                directory.resolve("results").toString()));
    command.addAll(List.of(arguments));
    return command;
  }

  /** The processes of a check: their environment names its working directory. */
  private List<ProcessHandle> ofTheCheck() {
    return ProcessHandle.allProcesses().filter(this::isOfTheCheck).toList();
  }

  private boolean isOfTheCheck(ProcessHandle process) {
    try {
      Path environment = Path.of("/proc", Long.toString(process.pid()), "environ");
      return Files.readString(environment, StandardCharsets.ISO_8859_1)
          .contains("=" + temporary + "/");
    } catch (IOException e) {
      return false; // it has ended, or is another user's
    }
  }

  private boolean hasDaemon() {
    return ofTheCheck().stream().anyMatch(process -> isDaemon(process.pid()));
  }

  private static boolean isDaemon(long pid) {
    try {
      return Files.readString(Path.of("/proc", Long.toString(pid), "comm"))
          .startsWith("nvidia-cuda-mps");
    } catch (IOException e) {
      return false;
    }
  }

  private List<Path> workingDirectories() throws IOException {
    try (Stream<Path> all = Files.list(temporary)) {
      return all.filter(path -> path.getFileName().toString().startsWith("vgpu-gpu-check"))
          .toList();
    }
  }

  /** The MPS daemon leaves the session of the step that starts it. */
  @ParameterizedTest
  @CsvSource({"INT, shares", "KILL, shares", "INT, mps", "KILL, mps"})
  void nothingIsLeftOfACheckThatIsEndedInAStep(String signal, String step) throws Exception {
    addTools();
    List<String> command = command("--only", step);
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().keySet().removeIf(name -> name.startsWith("VGPU_"));
    builder.environment().put("VGPU_HOME", HOME.toString());
    builder.environment().put("VGPU_BENCH_PROGRAM", program());
    Process process = builder.redirectOutput(directory.resolve("out").toFile()).start();
    try {
      // Five processes: the fault watcher, the session's leader, the step, its seat and a program.
      // For mps, the daemon.
      Commands.await(() -> step.equals("mps") ? hasDaemon() : ofTheCheck().size() >= 5, command);
      assertThat(workingDirectories()).hasSize(1);
      Signals.send(process.pid(), signal);
      assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isTrue();
      Commands.await(() -> ofTheCheck().isEmpty(), ofTheCheck());
    } finally {
      process.destroyForcibly();
    }
    // A killed check cannot remove its working directory: the next check does.
    assertThat(workingDirectories()).hasSize(signal.equals("KILL") ? 1 : 0);
    assertThat(check(Map.of("VGPU_EMULATOR", "devices=0")).exitCode()).isOne();
    assertThat(workingDirectories()).isEmpty();
  }

  /** The emulator's libraries in one directory, laid out as a driver's are. */
  private Path driver() throws IOException {
    Path place = Files.createDirectories(directory.resolve("driver"));
    for (GpuDriver driver : ServiceLoader.load(GpuDriver.class)) {
      for (Path library : List.of(driver.cudaLibrary(), driver.nvmlLibrary())) {
        copy(library, place);
      }
    }
    return place;
  }

  private static void copy(Path file, Path to) throws IOException {
    Files.copy(
        file,
        to.resolve(file.getFileName()),
        StandardCopyOption.REPLACE_EXISTING,
        StandardCopyOption.COPY_ATTRIBUTES);
  }

  /** Adds the stand-ins for the vendor's tools to the libraries. */
  private void addTools() throws IOException {
    Path place = driver();
    for (GpuDriver driver : ServiceLoader.load(GpuDriver.class)) {
      copy(driver.mpsControl().orElseThrow(), place);
    }
    copy(programs.resolve("nvidia-smi"), place);
  }

  private JsonNode result() throws IOException {
    try (Stream<Path> all = Files.list(directory.resolve("results"))) {
      Path json = all.filter(file -> file.toString().endsWith(".json")).findFirst().orElseThrow();
      return new ObjectMapper().readTree(json.toFile());
    }
  }

  @Test
  void whatTheVendorsToolsSayIsCompared() throws Exception {
    addTools();
    Ended ended = check(Map.of(), "--quick", "--only", "nvml,mig,mps", "--budget", BUDGET);
    assertThat(ended.exitCode()).as("%s", ended).isZero();
    JsonNode steps = result().path("steps");
    for (String step : List.of("nvml", "mig", "mps")) {
      assertThat(steps.at("/" + step + "/state").asText()).as("%s", ended).isEqualTo("ok");
    }
    assertThat(ended.out())
        .contains("memory.reserved", "used_gpu_memory of pid", "MIG mode is off")
        .contains("0 differences from vgpu's table", "of 2048 MiB");
    JsonNode mps = steps.at("/mps/figures/mps");
    assertThat(mps.path("client_is_listed").asBoolean()).as("%s", mps).isTrue();
    assertThat(mps.at("/answers/get_default_active_thread_percentage").asText()).isEqualTo("50.0");
  }

  @Test
  void whatTheVendorsToolSaysOtherwiseIsAFailureThatNamesBoth() throws Exception {
    addTools();
    Map<String, String> lie = Map.of("NVIDIA_SMI_SAYS", "memory.total=4711");
    Ended ended = check(lie, "--quick", "--only", "nvml,mig", "--budget", BUDGET);
    assertThat(ended.exitCode()).as("%s", ended).isOne();
    assertThat(ended.out())
        .contains("memory.total: NVML says 16384.0 MiB, nvidia-smi says 4711 MiB");
    assertThat(result().at("/steps/mig/state").asText()).isEqualTo("ok");
  }

  @Test
  void withoutTheVendorsToolsThoseStepsAreSkippedWithTheReason() throws Exception {
    Map<String, String> nothing = Map.of("PATH", directory.toString());
    Ended ended = check(nothing, "--quick", "--only", "nvml,mig,mps", "--budget", BUDGET);
    assertThat(ended.exitCode()).as("%s", ended).isZero();
    JsonNode steps = result().path("steps");
    assertThat(steps.at("/nvml/state").asText()).isEqualTo("skipped");
    assertThat(steps.at("/nvml/why").asText()).contains("there is no nvidia-smi");
    assertThat(steps.at("/mig/state").asText()).isEqualTo("ok");
    assertThat(steps.at("/mps/why").asText()).contains("there is no nvidia-cuda-mps-control");
  }

  @Test
  void mpsIsNotStartedWhereTheComputeModeForbidsIt() throws Exception {
    addTools();
    Map<String, String> prohibited = Map.of("VGPU_EMULATOR_NVML", "compute_mode=2");
    Ended ended = check(prohibited, "--quick", "--only", "mps", "--budget", BUDGET);
    assertThat(ended.exitCode()).as("%s", ended).isZero();
    assertThat(result().at("/steps/mps/why").asText()).contains("compute mode is prohibited");
  }

  @Test
  void stepsRunAndAreWrittenDownAndBecomeSettingsOfTheEmulator() throws Exception {
    String own = "model=Some GPU,sms=78,context=96MiB,module=8MiB,thread-pid=on";
    Ended ended =
        check(
            Map.of("VGPU_EMULATOR", own),
            "--quick",
            "--only",
            "machine,costs,quota",
            "--budget",
            BUDGET);
    assertThat(ended.exitCode()).as("%s", ended).isZero();
    assertThat(ended.out()).contains("OVER A STAND-IN DRIVER").contains("Some GPU");
    List<Path> files;
    try (Stream<Path> all = Files.list(directory.resolve("results"))) {
      files = all.sorted().toList();
    }
    assertThat(files).hasSize(3);
    JsonNode json = result();
    assertThat(json.path("ended").asBoolean()).isTrue();
    for (String step : List.of("machine", "costs", "quota")) {
      assertThat(json.at("/steps/" + step + "/state").asText()).as(step).isEqualTo("ok");
    }
    JsonNode machine = json.at("/steps/machine/figures");
    assertThat(machine.at("/doctor/said/ok").asBoolean()).isTrue();
    assertThat(machine.at("/machine/driver_imports").asText()).contains(" ioctl ");
    assertThat(json.at("/steps/quota/figures/churn/over_bytes").asLong(-1)).isZero();
    assertThat(Files.readString(files.get(2))).contains("what came out");
    String settings = Files.readString(files.get(0));
    assertThat(settings).contains("model=Some GPU\n", "module=8388608\n", "thread-pid=on\n");
    Map<String, String> emulated =
        Map.of(
            "LD_LIBRARY_PATH",
            driver().toString(),
            "VGPU_EMULATOR",
            "@" + files.get(0),
            "VGPU_EMULATOR_DIR",
            directory.resolve("emulated").toString());
    Ended about = run(emulated, List.of(program(), "about"));
    assertThat(about.out()).as("%s", settings).contains("\"gpu\":\"Some GPU\"", "\"sms\":78");
  }

  /** The emulator's resource manager is in each process, and allocates no memory. */
  @Test
  void channelsAreStoppedAndWhatTheEmulatorCannotAnswerIsTold() throws Exception {
    Ended ended = check(Map.of(), "--quick", "--only", "rm", "--budget", BUDGET);
    assertThat(ended.exitCode()).as("%s", ended).isZero();
    JsonNode step = result().at("/steps/rm");
    assertThat(step.path("state").asText()).as("%s", ended).isEqualTo("ok");
    assertThat(step.path("summary").asText())
        .contains(
            "itself FIFO_DISABLE_CHANNELS stops",
            "another process not on this machine",
            "vgpu-turns not on this machine");
    for (String method : List.of("schedule", "channels")) {
      JsonNode stopped = step.at("/figures/channels/own/" + method);
      assertThat(stopped.path("kernels_meanwhile").asLong(-1)).as("%s", step).isZero();
      assertThat(stopped.path("resumed").asBoolean()).as("%s", step).isTrue();
    }
    assertThat(step.at("/figures/channels/own/slice_us").asLong()).isEqualTo(500);
    assertThat(step.at("/figures/channels/other/foreign/status").asLong()).isEqualTo(0x23);
    assertThat(ended.out())
        .contains(
            "the ledger: not on this machine, because no driver's call passed",
            "vgpu-turns: not on this machine, because the stand-in's resource manager");
  }

  /** A driver that refuses to stop channels is reported, and no failure. */
  @Test
  void refusedStopIsNotAsExpected() throws Exception {
    Map<String, String> refusing = Map.of("VGPU_EMULATOR_RM", "refuse=2080110b");
    Ended ended = check(refusing, "--quick", "--only", "rm", "--budget", BUDGET);
    assertThat(ended.exitCode()).as("%s", ended).isZero();
    JsonNode step = result().at("/steps/rm");
    assertThat(step.path("summary").asText())
        .as("%s", ended)
        .contains("itself FIFO_DISABLE_CHANNELS does NOT stop");
    assertThat(step.at("/unexpected/0").asText())
        .contains("stop by channels", "86, expected at most 0", "cannot stop tenants by it");
  }

  /** The driver has expensive events and reports a fault. */
  @Test
  void faultsAndFiguresThatAreNotAsExpectedAreTold() throws Exception {
    List<String> command =
        command("--quick", "--only", "clients,driver,charged,leave", "--budget", BUDGET);
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().keySet().removeIf(name -> name.startsWith("VGPU_"));
    builder.environment().put("VGPU_HOME", HOME.toString());
    builder.environment().put("VGPU_BENCH_PROGRAM", program());
    builder.environment().put("VGPU_EMULATOR", "record-cost=5us");
    Path out = directory.resolve("out");
    Process process = builder.redirectOutput(out.toFile()).start();
    try {
      Commands.await(() -> isWatchingFaults(), command);
      Path events = workingDirectories().get(0).resolve("emulator/nvml.events");
      Files.writeString(events, "0 8 79\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
      boolean ended = process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS);
      assertThat(ended).as("%s", Files.readString(out)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    String said = Files.readString(out);
    assertThat(process.exitValue()).as(said).isOne();
    JsonNode steps = result().path("steps");
    assertThat(steps.findValuesAsText("why")).as(said).containsExactly("the GPU reported [Xid 79]");
    assertThat(steps.at("/driver/unexpected/0").asText())
        .startsWith("a record's p50")
        .endsWith("batches have to be longer");
    assertThat(steps.at("/clients/figures/names/vgpu").properties())
        .hasSize(5)
        .allMatch(name -> name.getValue().asText().endsWith("libvgpu_cuda.so"));
    assertThat(steps.at("/leave/summary").asText()).isEqualTo("9 of 9 ended well under vgpu");
    JsonNode stopped = steps.at("/leave/figures/vgpu, stopped by an online program");
    assertThat(stopped).hasSize(3).allMatch(kind -> kind.path("runs").asInt() > 0);
  }

  private boolean isWatchingFaults() {
    try {
      for (Path work : workingDirectories()) {
        Path faults = work.resolve("faults");
        if (Files.exists(faults) && Files.readString(faults).startsWith("ready")) {
          return true;
        }
      }
      return false;
    } catch (IOException e) {
      return false; // the file is being created
    }
  }

  /** Each mix reuses the shares of the previous one, whose killed programs may linger. */
  @Test
  void sharesAreMeasuredOneMixAfterTheOther() throws Exception {
    Ended ended = check(Map.of(), "--quick", "--only", "shares", "--budget", BUDGET);
    assertThat(ended.exitCode()).as("%s", ended).isZero();
    assertThat(ended.out()).contains("75/25");
  }

  @Test
  void stepThatHasNoTimeDoesNotStopTheReport() throws Exception {
    Ended ended = check(Map.of(), "--quick", "--only", "machine,shares", "--budget", "1");
    assertThat(ended.exitCode()).as("%s", ended).isOne();
    assertThat(ended.out()).contains("not run").contains("no time left");
  }

  @Test
  void withoutAGpuItFailsAndSaysSo() throws Exception {
    Ended ended = check(Map.of("VGPU_EMULATOR", "devices=0"));
    assertThat(ended.exitCode()).as("%s", ended).isOne();
    assertThat(ended.err())
        .contains("there is no NVIDIA GPU here")
        .contains("CUDA_ERROR_NO_DEVICE")
        .doesNotContain("    at ");
    assertThat(directory.resolve("results")).doesNotExist();
  }

  @Test
  void sessionEndsAllThatItStarted() throws Exception {
    Path pids = directory.resolve("pids");
    String script =
        "sleep 60 & echo $! >>PIDS; (sleep 60 & echo $! >>PIDS); echo $$ >>PIDS; sleep 60";
    Ended ended =
        run(
            Map.of(),
            List.of(
                program(), "session", "0.5", "sh", "-c", script.replace("PIDS", pids.toString())));
    assertThat(ended.exitCode()).as("%s", ended).isEqualTo(124);
    assertThat(Files.readAllLines(pids))
        .hasSize(3)
        .allSatisfy(pid -> assertThat(Path.of("/proc", pid)).doesNotExist());
    assertThat(run(Map.of(), List.of(program(), "session", "20", "sh", "-c", "exit 7")))
        .extracting(Ended::exitCode)
        .isEqualTo(7);
  }
}
