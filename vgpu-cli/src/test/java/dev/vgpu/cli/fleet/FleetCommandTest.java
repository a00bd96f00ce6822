package dev.vgpu.cli.fleet;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.cli.Fakes;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.time.NanoClock;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FleetCommandTest {
  /**
   * Eight GPUs: two gangs that need all of them, a gang and a job that need nine, and half a GPU.
   */
  private static final String TRACE =
      """
      node,a,1,A100,8,80GiB,96000,768GiB,left
      job,first,8,0,100,offline,1,,4000,32GiB,A100
      job,second,8,10,100,offline,1,,4000,32GiB,A100
      job,huge,9,20,100,offline,1,,4000,32GiB,
      job,wide,1,20,100,offline,9,,4000,32GiB,
      job,half,1,30,50,offline,50%,20GiB,4000,16GiB,
      """;

  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();

  @TempDir private Path directory;

  private int run(String... args) {
    Console console =
        new Console(new PrintStream(out, true, UTF_8), new PrintStream(err, true, UTF_8));
    return Fakes.commandLine(new CliContext(console, Map.of(), options -> null, NanoClock.system()))
        .execute(args);
  }

  private String trace(String text) throws Exception {
    return Files.writeString(directory.resolve("trace.csv"), text).toString();
  }

  @Test
  void gangsWaitForAllTheirGpus() throws Exception {
    String file = trace(TRACE);
    assertThat(run("fleet", "simulate", file, "--policies=best-fit,vgpu", "--json")).isZero();
    JsonNode all = new ObjectMapper().readTree(out.toByteArray());
    assertThat(all.path("trace").asText()).isEqualTo("trace.csv");
    assertThat(all.path("nodes").asInt()).isEqualTo(1);
    assertThat(all.path("jobs").asInt()).isEqualTo(5);
    assertThat(all.path("policies").findValuesAsText("policy")).containsExactly("best-fit", "vgpu");
    for (JsonNode policy : all.path("policies")) {
      assertThat(policy.path("started").asInt()).isEqualTo(3);
      assertThat(policy.path("gangs").asInt()).isEqualTo(2);
      assertThat(policy.path("refused").asInt()).as("wide").isEqualTo(1);
      assertThat(policy.path("neverStarted").asInt()).as("huge").isEqualTo(1);
      JsonNode waits = policy.at("/waitingSeconds/OFFLINE");
      assertThat(waits.path("jobs").asInt()).isEqualTo(3);
      assertThat(waits.path("median").asDouble()).as("second").isEqualTo(90);
      assertThat(waits.path("most").asDouble()).as("half").isEqualTo(170);
    }
    assertThat(err.toString(UTF_8).lines())
        .containsExactly(
            "[1/2] place the jobs with policy best-fit", "[2/2] place the jobs with policy vgpu");
  }

  @Test
  void tableHasARowForEachPolicyAndThePlotALine() throws Exception {
    Path plot = directory.resolve("plot.svg");
    assertThat(run("fleet", "simulate", trace(TRACE), "--plot=" + plot)).isZero();
    assertThat(out.toString(UTF_8))
        .startsWith("trace.csv: nodes=1 gpus=8 jobs=5\n")
        .contains("random", "spread", "binpack", "best-fit", "fgd", "vgpu", "decision p50");
    assertThat(plot).content().startsWith("<svg").contains("best-fit", "fgd", "vgpu");
  }

  @Test
  void wrongInputIsNamed() throws Exception {
    String file = trace(TRACE.replace("job,huge,9", "job,huge,none"));
    assertThat(run("fleet", "simulate", file)).isEqualTo(1);
    assertThat(err.toString(UTF_8)).contains("trace.csv, line 4: ", "none");
    assertThat(run("fleet", "simulate", directory.resolve("absent").toString())).isEqualTo(1);
    assertThat(err.toString(UTF_8)).contains("cannot read the trace", "absent");
    assertThat(run("fleet", "simulate", file, "--policies=best")).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("no such policy: best; there are");
    assertThat(run("fleet", "simulate", "openb")).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("--data names its directory");
    assertThat(run("fleet")).isEqualTo(2);
    assertThat(out.toString(UTF_8)).isEmpty();
  }
}
