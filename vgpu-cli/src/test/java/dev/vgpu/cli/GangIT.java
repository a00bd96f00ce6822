package dev.vgpu.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** {@code vgpu run --gpus} with real programs over two emulated GPUs. */
class GangIT {
  private CommandNode node;

  @BeforeEach
  void open() throws IOException {
    node = CommandNode.open();
  }

  @AfterEach
  void close() throws IOException {
    node.close();
  }

  private static String spin(int device) {
    return CommandNode.program("spin") + " --us=500 --seconds=2 --device=" + device + " & ";
  }

  @Test
  void gangTakesItsTurnsOnBothGpusBesideSingles() throws Exception {
    CommandNode.Command gang =
        node.run(
            "--gpus 2 --memory 1GiB --name gang",
            "sh",
            "-c",
            "echo begins; " + spin(0) + spin(1) + "wait; echo ended");
    gang.prints("begins");
    CommandNode.Command first =
        node.run("--gpu 0 --memory 1GiB --name one", "sh", "-c", spin(0) + "wait; echo ended");
    CommandNode.Command second =
        node.run("--gpu 1 --memory 1GiB --name two", "sh", "-c", spin(0) + "wait; echo ended");
    CommandNode.await(() -> leases().size() == 3, gang);
    JsonNode lease = lease("gang");
    Set<String> gpus = new HashSet<>();
    lease.path("gpus").forEach(gpu -> gpus.add(gpu.asText()));
    assertThat(gpus).as("%s", lease).hasSize(2);
    assertThat(lease.path("gpu_count").asInt()).isEqualTo(2);
    gang.succeeds().prints("ended");
    first.succeeds().prints("ended");
    second.succeeds().prints("ended");
    CommandNode.await(() -> leases().isEmpty(), gang);
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

  private JsonNode lease(String name) {
    for (JsonNode lease : leases()) {
      if (lease.path("name").asText().equals(name)) {
        return lease;
      }
    }
    throw new AssertionError("no lease " + name);
  }

  @Test
  void moreGpusThanThereAreIsWrongUsage() throws Exception {
    CommandNode.Command run = node.run("--gpus 3 --memory 1GiB", "true");
    assertThat(run.exitCode()).as("%s", run).isEqualTo(2);
    assertThat(run.err()).contains("more GPUs than this pool has");
  }
}
