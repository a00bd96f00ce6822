package dev.vgpu.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.cli.CommandNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code vgpu run --gpus} with real programs over two emulated GPUs. */
class GangIT {
  @TempDir private Path temporary;
  private CommandNode node;
  private Path stop;

  @BeforeEach
  void open() throws IOException {
    node = CommandNode.open();
    stop = temporary.resolve("stop");
  }

  @AfterEach
  void close() throws IOException {
    node.close();
  }

  private String untilStopped(int... devices) {
    StringBuilder script = new StringBuilder("until [ -e " + stop + " ]; do ");
    for (int device : devices) {
      script.append(CommandNode.program("spin"));
      script.append(" --us=500 --seconds=0.3 --device=").append(device).append(" & ");
    }
    return script.append("wait; done; echo ended").toString();
  }

  @Test
  void gangTakesItsTurnsOnBothGpusBesideSingles() throws Exception {
    CommandNode.Command gang =
        node.run("--gpus 2 --memory 1GiB --name gang", "sh", "-c", untilStopped(0, 1));
    CommandNode.Command one =
        node.run("--gpu 0 --memory 1GiB --name one", "sh", "-c", untilStopped(0));
    CommandNode.Command two =
        node.run("--gpu 1 --memory 1GiB --name two", "sh", "-c", untilStopped(0));
    AtomicReference<JsonNode> seen = new AtomicReference<>();
    Object state =
        new Object() {
          @Override
          public String toString() {
            return seen.get() + "\none " + one + "\ntwo " + two;
          }
        };
    CommandNode.await(() -> allHaveWorked(seen), state);
    for (JsonNode lease : seen.get()) {
      Set<String> gpus = new HashSet<>();
      lease.path("gpus").forEach(gpu -> gpus.add(gpu.asText()));
      int expected = lease.path("name").asText().equals("gang") ? 2 : 1;
      assertThat(gpus).as("%s", lease).hasSize(expected);
    }
    Files.createFile(stop);
    gang.succeeds().prints("ended");
    one.succeeds().prints("ended");
    two.succeeds().prints("ended");
    CommandNode.await(() -> leases().isEmpty(), gang);
  }

  private boolean allHaveWorked(AtomicReference<JsonNode> seen) {
    JsonNode leases = leases();
    seen.set(leases);
    boolean all = leases.size() == 3;
    for (JsonNode lease : leases) {
      all &= lease.path("gpu_time_ns").asLong() > 0;
    }
    return all;
  }

  private JsonNode leases() {
    try {
      return node.leases();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(e);
    }
  }

  @Test
  void quotaHoldsOnEachGpuByItself() throws Exception {
    long quota = 1L << 30;
    long room = quota - (64L << 20);
    String hoard = CommandNode.program("hoard") + " --json --chunk=1MiB --device=";
    Path filled = temporary.resolve("filled");
    String script =
        String.join(
            "\n",
            hoard + "0 --hold=600 > " + filled + " & p=$!",
            "until grep -q refusal " + filled + "; do sleep 0.01; done",
            CommandNode.program("smi") + " --json",
            hoard + "1",
            "cat " + filled,
            "kill -9 $p; wait",
            "until " + hoard + "0 > " + filled + "; grep -q '\"bytes\":" + room + "' " + filled,
            "do sleep 0.1; done",
            "cat " + filled);
    CommandNode.Command gang =
        node.run("--gpus 2 --memory 1GiB --name gang", "sh", "-c", script).succeeds();
    List<JsonNode> answers = new ArrayList<>();
    for (String line : gang.out().lines().filter(line -> line.startsWith("{")).toList()) {
      answers.add(new ObjectMapper().readTree(line));
    }
    assertThat(answers).as("%s", gang).hasSize(4);
    JsonNode nvml = answers.remove(0).path("gpus");
    for (int gpu = 0; gpu < 2; gpu++) {
      assertThat(nvml.path(gpu).path("total").asLong()).isEqualTo(quota);
      assertThat(nvml.path(gpu).path("used").asLong()).isEqualTo(gpu == 0 ? quota : 0);
      assertThat(nvml.path(gpu).path("processes")).hasSize(gpu == 0 ? 1 : 0);
    }
    // The second GPU while the first is full, the first, and the first after a kill.
    for (JsonNode answer : answers) {
      assertThat(answer.path("total_before").asLong()).isEqualTo(quota);
      assertThat(answer.path("bytes").asLong()).isEqualTo(room);
      assertThat(answer.path("refusal_code").asInt()).isEqualTo(2);
    }
  }

  @Test
  void moreGpusThanThereAreIsWrongUsage() throws Exception {
    CommandNode.Command run = node.run("--gpus 3 --memory 1GiB", "true");
    assertThat(run.exitCode()).as("%s", run).isEqualTo(2);
    assertThat(run.err()).contains("more GPUs than this pool has");
  }
}
