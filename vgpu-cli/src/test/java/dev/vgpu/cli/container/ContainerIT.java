package dev.vgpu.cli.container;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.cli.CommandNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code vgpu cdi}, and programs in containers created from its files. */
class ContainerIT {
  private static final long MIB = 1L << 20;

  @TempDir Path work;
  private CommandNode node;

  @BeforeEach
  void open() throws IOException {
    node = CommandNode.open();
  }

  @AfterEach
  void close() throws IOException {
    node.close();
  }

  private CommandNode.Command cdi(String... command) throws IOException {
    List<String> all =
        new ArrayList<>(
            List.of("cdi", "--memory", "777MiB", "--compute", "50", "--output", file().toString()));
    all.add("--");
    all.addAll(List.of(command));
    return node.vgpu(all.toArray(String[]::new));
  }

  private Path file() {
    return work.resolve("vgpu.json");
  }

  /** Runs a sample in a container. */
  private CommandNode.Command container(String pids, String program, String... arguments)
      throws IOException {
    List<String> command = new ArrayList<>(CommandNode.javaCommand());
    command.add("dev.vgpu.cli.container.ContainerRuntime");
    command.addAll(List.of(file().toString(), work.resolve("root").toString(), pids));
    command.add(CommandNode.program(program));
    command.addAll(List.of(arguments));
    return cdi(command.toArray(String[]::new));
  }

  @ParameterizedTest
  @ValueSource(strings = {"INT", "TERM", "HUP"})
  void signalGoesToTheCommandAndTheFileGoesAfterIt(String signal) throws Exception {
    String script =
        "trap 'ls " + file() + "; exit 9' " + signal + "; echo ready; while :; do sleep 0.05; done";
    CommandNode.Command cdi = cdi("sh", "-c", script).prints("ready");
    cdi.signal(signal);
    assertThat(cdi.exitCode()).as("%s", cdi).isEqualTo(9);
    assertThat(cdi.out()).contains(file().toString());
    assertThat(file()).doesNotExist();
  }

  @Test
  void fileIsRightAndGoesWithTheVirtualGpu() throws Exception {
    Path copy = work.resolve("copy");
    CommandNode.Command cdi =
        cdi("sh", "-c", "cp '" + file() + "' '" + copy + "'; echo $VGPU_CDI_DEVICE; exit 3");
    assertThat(cdi.exitCode()).as("%s", cdi).isEqualTo(3);
    assertThat(file()).doesNotExist();
    JsonNode content = new ObjectMapper().readTree(copy.toFile());
    assertThat(CdiRules.problems(content)).isEmpty();
    String name = content.path("devices").path(0).path("name").asText();
    assertThat(cdi.out()).isEqualTo("vgpu.dev/gpu=" + name + "\n");
    node.vgpu("cdi", "--check", copy.toString()).succeeds();
    assertThat(node.leases()).isEmpty();
  }

  @Test
  void signalEndsIt() throws Exception {
    CommandNode.Command cdi = node.vgpu("cdi", "--memory", "777MiB", "--name", "box");
    cdi.prints("\"vgpu.dev/gpu\"").prints("}\n");
    CommandNode.await(() -> cdi.err().contains("vgpu.dev/gpu=box"), cdi);
    cdi.signal("TERM");
    cdi.succeeds();
  }

  @Test
  void wrongFileIsToldByWhatIsWrong() throws Exception {
    Path wrong = Files.writeString(work.resolve("wrong.json"), "{\"cdiVersion\":\"9\"}");
    CommandNode.Command check = node.vgpu("cdi", "--check", wrong.toString());
    assertThat(check.exitCode()).isEqualTo(1);
    assertThat(check.err()).contains("cdiVersion", "kind", "no device");
  }

  @ParameterizedTest
  @ValueSource(strings = {"host", "own"})
  void programInAContainerGetsItsQuotaAndNotAByteMore(String pids) throws Exception {
    JsonNode figures =
        container(pids, "hoard", "--chunk=64MiB", "--least=1MiB", "--json").succeeds().json();
    long left = 777 * MIB - CommandNode.CONTEXT_BYTES - figures.path("bytes").asLong();
    assertThat(left).isBetween(0L, MIB - 1);
    assertThat(figures.path("total_before").asLong()).isEqualTo(777 * MIB);
    assertThat(figures.path("refusal").asText()).isEqualTo("CUDA_ERROR_OUT_OF_MEMORY");
  }

  @Test
  void nvmlInAContainerShowsTheVirtualGpu() throws Exception {
    JsonNode gpus = container("own", "smi", "--json").succeeds().json().path("gpus");
    assertThat(gpus).hasSize(1);
    assertThat(gpus.get(0).path("total").asLong()).isEqualTo(777 * MIB);
  }

  @Test
  void workInAContainerTakesTurns() throws Exception {
    JsonNode figures =
        container("own", "spin", "--us=500", "--seconds=1", "--json").succeeds().json();
    assertThat(figures.path("kernels").asLong()).isPositive();
    assertThat(figures.path("share_percent").asDouble()).isLessThan(90);
  }
}
