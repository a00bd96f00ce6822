package dev.vgpu.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code serve}, {@code ls}, {@code top}, {@code devices} and {@code doctor} on one node. */
class SeatCommandsIT {
  private CommandNode node;

  @BeforeEach
  void open() throws IOException {
    node = CommandNode.open();
  }

  @AfterEach
  void close() throws IOException {
    node.close();
  }

  @ParameterizedTest
  @ValueSource(strings = {"TERM", "INT", "HUP"})
  void serveHoldsTheSeatUntilASignal(String signal) throws Exception {
    CommandNode.Command serve = node.vgpu("serve").prints("holding the seat of");
    assertThat(serve.out()).contains("2 GPUs", "pid " + serve.pid());
    serve.signal(signal);
    serve.succeeds();
  }

  @Test
  void secondServeStandsByAndTakesOver() throws Exception {
    CommandNode.Command first = node.vgpu("serve").prints("holding the seat of");
    CommandNode.Command second = node.vgpu("serve").prints("standing by");
    assertThat(second.out()).contains("held by pid " + first.pid());
    first.signal("KILL");
    second.prints("holding the seat of");
  }

  @Test
  void serveShowsTheDashboardAndItsTokenWhereOthersReachIt() throws Exception {
    CommandNode.Command alone = node.vgpu("serve", "--web", "0").prints("dashboard at");
    assertThat(alone.out()).containsPattern("http://127\\.0\\.0\\.1:\\d+/\\n");
    String url = alone.out().replaceAll("(?s).*dashboard at (\\S+).*", "$1");
    HttpRequest page = HttpRequest.newBuilder(URI.create(url)).build();
    HttpClient client = HttpClient.newHttpClient();
    assertThat(client.send(page, HttpResponse.BodyHandlers.ofString()).body()).contains("vgpu");
    CommandNode.Command others = node.vgpu("serve", "--web=0.0.0.0:0").prints("dashboard at");
    assertThat(others.out()).containsPattern("/login#[0-9a-f]{32}\\n");
    String taken = "--web=" + URI.create(url).getPort();
    CommandNode.Command third = node.vgpu("serve", taken);
    assertThat(third.exitCode()).isEqualTo(1);
    assertThat(third.err()).contains("cannot listen on 127.0.0.1", "--web HOST:PORT");
  }

  @Test
  void devicesAreTheEmulatedOnes() throws Exception {
    JsonNode devices = node.vgpu("devices", "--json").succeeds().json().path("devices");
    assertThat(devices).hasSize(2);
    assertThat(devices.path(0).path("id").asText()).startsWith("GPU-");
    assertThat(devices.path(0).path("memory_bytes").asLong()).isEqualTo(4L << 30);
  }

  /** The seat knows the GPUs: a client has no reason to start the libraries that find them. */
  @Test
  void besideASeatLsLoadsNoClassThatFindsGpusAndNeitherParserNorJson() throws Exception {
    assertThat(loadedByLs("alone")).contains("dev.vgpu.nvml.");
    node.vgpu("serve").prints("holding the seat of");
    assertThat(loadedByLs("beside"))
        .contains("dev.vgpu.core.seat.SeatClient ")
        .doesNotContain("dev.vgpu.nvml.", "com.sun.jna.", "dev.vgpu.cuda.", "dev.vgpu.emulator.")
        .doesNotContain("picocli.CommandLine ", "com.fasterxml.jackson.databind.ObjectMapper ");
  }

  /** {@return the log of the classes that {@code ls} loads} */
  private String loadedByLs(String name) throws Exception {
    Path log = Files.createDirectories(node.runDirectory().resolveSibling("logs")).resolve(name);
    String option = "-Xlog:class+load:file=" + log;
    node.vgpuWith(List.of("JDK_JAVA_OPTIONS=" + option), "ls").succeeds();
    return Files.readString(log);
  }

  @Test
  void doctorTellsWhoHoldsTheSeat() throws Exception {
    CommandNode.Command serve = node.vgpu("serve").prints("holding the seat of");
    JsonNode doctor = node.vgpu("doctor", "--json").succeeds().json();
    assertThat(doctor.path("seat_holder_pid").asLong()).isEqualTo(serve.pid());
    assertThat(doctor.path("backends").findValuesAsText("name")).contains("cuda-hook");
  }

  @ParameterizedTest
  @CsvSource({
    "lost.1=1, a GPU is left out: index=1, nvidia-smi --gpu-reset",
    "driver=18, NVML error 18, have different versions",
  })
  void doctorNamesAGpuThatTheDriverListsAndDoesNotGive(String fault, String said, String remedy)
      throws Exception {
    CommandNode.Command doctor =
        node.vgpuWith(List.of("VGPU_EMULATOR_NVML=" + fault), "doctor", "--json");
    assertThat(doctor.exitCode()).as("%s", doctor).isEqualTo(1);
    assertThat(doctor.json().path("problems").toString()).contains(said, remedy);
  }

  /** As on GB10, whose memory NVML does not report. */
  @Test
  void aGpuWithoutMemoryOfItsOwnHasTheHosts() throws Exception {
    List<String> integrated = List.of("VGPU_EMULATOR=devices=1,context=64MiB,integrated=on");
    CommandNode.Command devices = node.vgpuWith(integrated, "devices", "--json").succeeds();
    JsonNode device = devices.json().path("devices").path(0);
    assertThat(device.at("/properties/memory").asText()).as("%s", devices).isEqualTo("the host's");
    assertThat(device.path("memory_used_bytes").asLong()).isPositive();
    CommandNode.Command doctor = node.vgpuWith(integrated, "doctor");
    assertThat(doctor.exitCode()).as("%s", doctor).isZero();
    assertThat(doctor.out().replaceAll("\\s+", " ")).contains("its memory is the host's");

    String smi = CommandNode.program("smi");
    CommandNode.Command under =
        node.vgpuWith(integrated, "run", "--memory", "256MiB", "--", smi, "--json").succeeds();
    assertThat(under.json().at("/gpus/0/total").asLong()).as("%s", under).isEqualTo(256L << 20);
    String most = (device.path("memory_bytes").asLong() >> 30) + 1 + "GiB";
    CommandNode.Command refused =
        node.vgpuWith(integrated, "run", "--memory", most, "--", smi, "--json");
    assertThat(refused.exitCode()).as("%s", refused).isNotZero();
    assertThat(refused.out()).isEmpty();
  }

  @Test
  void lsAndTopShowWhatRuns() throws Exception {
    node.vgpu("serve").prints("holding the seat of");
    assertThat(node.leases()).isEmpty();
    CommandNode.Command run = spin("--memory 1GiB --compute 50 --class offline --name batch");
    long held = CommandNode.CONTEXT_BYTES + (256L << 20);
    JsonNode lease =
        awaitLeases(
                leases ->
                    leases.path(0).path("memory_used_bytes").asLong() == held
                        && leases.path(0).path("launches").asLong() > 0)
            .path(0);
    assertThat(lease.path("id").asText()).startsWith("batch");
    assertThat(lease.path("class").asText()).isEqualTo("offline");
    assertThat(lease.path("share_percent").asInt()).isEqualTo(50);
    assertThat(lease.path("memory_quota_bytes").asLong()).isEqualTo(1L << 30);
    assertThat(lease.path("owner_pid").asLong()).isEqualTo(run.pid());

    CommandNode.Command top = node.vgpu("top", "--json", "--count=2", "--interval=500ms");
    List<String> lines = top.succeeds().out().lines().toList();
    assertThat(lines).hasSize(2);
    JsonNode second = new ObjectMapper().readTree(lines.get(1));
    assertThat(second.path("leases").path(0).path("share_held_percent").asDouble()).isPositive();

    run.signal("TERM");
    run.succeeds();
    assertThat(awaitLeases(JsonNode::isEmpty)).isEmpty();
  }

  @Test
  void topEndsWellByCtrlC() throws Exception {
    CommandNode.Command top = node.vgpu("top", "--interval=100ms").prints("GPU-");
    top.signal("INT");
    top.succeeds();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void programOutlivesItsKilledCommandUnderItsLease(boolean isServed) throws Exception {
    if (isServed) {
      node.vgpu("serve").prints("holding the seat of");
    }
    CommandNode.Command run = spin("--memory 1GiB --compute 50");
    JsonNode lease = awaitLeases(leases -> leases.path(0).path("processes").asInt() == 1).path(0);
    // Not simply its first descendant: a process that holds the seat has a helper process too.
    long pid = lease.path("pids").path(0).asLong();
    ProcessHandle program = ProcessHandle.of(pid).orElseThrow();
    run.signal("KILL");
    assertThat(run.exitCode()).isEqualTo(137);
    assertThat(program.isAlive()).isTrue();
    assertThat(node.leases().path(0).path("processes").asInt()).isEqualTo(1);
    program.destroy();
    assertThat(awaitLeases(JsonNode::isEmpty)).isEmpty();
  }

  private CommandNode.Command spin(String terms) throws IOException {
    return node.run(
        terms, CommandNode.program("spin"), "--us=500", "--seconds=60", "--hold=256MiB");
  }

  private JsonNode awaitLeases(Predicate<JsonNode> condition) throws Exception {
    JsonNode leases = node.leases();
    for (int tries = 0; tries < 60 && !condition.test(leases); tries++) {
      leases = node.leases();
    }
    assertThat(condition.test(leases)).as("%s", leases).isTrue();
    return leases;
  }
}
