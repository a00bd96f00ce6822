package dev.vgpu.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.cli.CommandNode;
import dev.vgpu.spi.GpuDriver;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** {@code vgpu run} with concurrent programs, over the emulator and its stand-in for MPS. */
class MpsIT {
  private static final String IN_SPACE = "--gpu 0 --require compute:spatial --compute 30 --memory ";
  private static final String DAEMON =
      "echo daemon=$(cat $CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid)=; exec sleep 60";

  private CommandNode node;

  @BeforeEach
  void open() throws IOException {
    node = CommandNode.open();
  }

  /** A daemon whose lease was not released in time stays until the next seat looks. */
  @AfterEach
  void close() throws IOException {
    List<Long> daemons = new ArrayList<>();
    try (Stream<Path> files = Files.walk(node.runDirectory().resolve("mps"))) {
      for (Path file : files.filter(path -> path.toString().endsWith(".pid")).toList()) {
        daemons.add(Long.parseLong(Files.readString(file).strip()));
      }
    }
    node.close();
    for (long pid : daemons) {
      ProcessHandle.of(pid).ifPresent(ProcessHandle::destroyForcibly);
    }
  }

  private static String daemon(CommandNode.Command command) {
    return command.out().split("=", -1)[1];
  }

  @Test
  void quotaIsExactAsWithoutMps() throws Exception {
    CommandNode.Command run =
        node.run(
            IN_SPACE + "777MiB",
            CommandNode.program("hoard"),
            "--chunk=64MiB",
            "--least=1MiB",
            "--json");
    JsonNode figures = run.succeeds().json();
    long left = (777L << 20) - CommandNode.CONTEXT_BYTES - figures.path("bytes").asLong();
    assertThat(left).as("%s", run).isBetween(0L, (1L << 20) - 1);
    assertThat(figures.path("refusal").asText()).isEqualTo("CUDA_ERROR_OUT_OF_MEMORY");
  }

  @Test
  void programsTakeNoTurnsAndThoseThatDoAreRefusedBesideThem() throws Exception {
    CommandNode.Command one =
        node.run(IN_SPACE + "1GiB", CommandNode.program("spin"), "--seconds=2", "--json");
    CommandNode.Command two =
        node.run(IN_SPACE + "1GiB", CommandNode.program("spin"), "--seconds=2", "--json");
    assertThat(one.succeeds().json().path("kernels").asLong()).isPositive();
    assertThat(two.succeeds().json().path("kernels").asLong()).isPositive();
    CommandNode.Command holder = node.run(IN_SPACE + "1GiB", "sh", "-c", DAEMON).prints("daemon=");
    CommandNode.Command inTurns =
        node.run("--gpu 0 --memory 1GiB --require preemption:between-kernels", "true");
    assertThat(inTurns.exitCode()).as("%s", inTurns).isEqualTo(75);
    assertThat(inTurns.err()).contains("the GPU is shared in space", "sh-");
    holder.signal("TERM");
    assertThat(holder.exitCode()).isEqualTo(143);
  }

  @Test
  void daemonOutlivesTheSeatsHolderAndEndsWithTheLastProgram() throws Exception {
    CommandNode.Command first = node.run(IN_SPACE + "1GiB", "sh", "-c", DAEMON).prints("daemon=");
    CommandNode.Command second = node.run(IN_SPACE + "1GiB", "sh", "-c", DAEMON).prints("daemon=");
    String pid = daemon(first);
    assertThat(daemon(second)).isEqualTo(pid);
    List<ProcessHandle> left = first.descendants();
    first.signal("KILL"); // it held the seat; its program goes on
    CommandNode.Command third =
        node.run("--wait 30s " + IN_SPACE + "1GiB", "sh", "-c", DAEMON).prints("daemon=");
    assertThat(daemon(third)).isEqualTo(pid);
    second.signal("TERM");
    assertThat(second.exitCode()).isEqualTo(143);
    left.forEach(ProcessHandle::destroyForcibly); // the seat's own program ended with it
    while (node.leases().size() > 1) {
      assertThat(third.descendants()).as("%s", third).isNotEmpty();
    }
    third.signal("TERM");
    assertThat(third.exitCode()).isEqualTo(143);
    long daemon = Long.parseLong(pid);
    CommandNode.await(
        () -> !ProcessHandle.of(daemon).map(ProcessHandle::isAlive).orElse(false), second);
  }

  @Test
  void daemonThatAKilledSeatLeftIsEndedByTheNextOne() throws Exception {
    CommandNode.Command killed = node.run(IN_SPACE + "1GiB", "sh", "-c", DAEMON).prints("daemon=");
    long daemon = Long.parseLong(daemon(killed));
    for (ProcessHandle program : killed.descendants()) {
      CommandNode.signalProcess("KILL", program.pid());
    }
    killed.signal("KILL");
    assertThat(killed.exitCode()).isEqualTo(137);
    assertThat(ProcessHandle.of(daemon).map(ProcessHandle::isAlive)).contains(true);
    CommandNode.Command next = node.vgpuWith(List.of(), "serve");
    CommandNode.await(
        () -> !ProcessHandle.of(daemon).map(ProcessHandle::isAlive).orElse(false), next);
  }

  /**
   * A client's fault terminates the MPS server, and with it all of the server's clients. Clients on
   * another GPU are not affected.
   */
  @Test
  void whoIsInReachOfAClientsFaultIsTold() throws Exception {
    CommandNode.Command seat = node.vgpu("serve");
    CommandNode.Command top = node.vgpu("top", "--json", "--interval", "200ms");
    CommandNode.Command faulty = spinning("0", "faulty").prints("pipes=");
    CommandNode.Command beside = spinning("0", "beside").prints("pipes=");
    CommandNode.Command apart = spinning("1", "apart").prints("pipes=");
    CommandNode.await(() -> attached() == 3, beside);
    String pipes = faulty.out().split("=", -1)[1];
    List<ProcessHandle> clients = faulty.descendants();
    CommandNode.await(
        () -> top.out().contains("the MPS server ended") || fault(pipes, clients), top);
    assertThat(faulty.exitCode()).as("%s", faulty).isEqualTo(139);
    List<JsonNode> told = new ArrayList<>();
    for (String frame : top.out().split("\n", -1)) {
      if (frame.endsWith("}")) {
        for (JsonNode event : new ObjectMapper().readTree(frame).path("events")) {
          if (event.path("kind").asText().equals("Disturbed")) {
            told.add(event);
          }
        }
      }
    }
    assertThat(told).as("%s %s", seat, top).isNotEmpty();
    for (JsonNode event : told) {
      assertThat(event.path("virtual_gpu").asText()).startsWith("beside");
      assertThat(event.path("reason").asText())
          .contains("as after a client's fault", "in its reach: [beside")
          .doesNotContain("apart");
    }
    for (CommandNode.Command each : List.of(beside, apart)) {
      each.signal("TERM"); // spin then prints its figures
      each.succeeds();
    }
  }

  private CommandNode.Command spinning(String gpu, String name) throws IOException {
    return node.run(
        "--gpu " + gpu + " --require compute:spatial --compute 30 --memory 1GiB --name " + name,
        "sh",
        "-c",
        "echo pipes=$CUDA_MPS_PIPE_DIRECTORY=; exec "
            + CommandNode.program("spin")
            + " --us=500 --seconds=300");
  }

  private int attached() {
    try {
      int attached = 0;
      for (JsonNode lease : node.leases()) {
        attached += lease.path("pids").size();
      }
      return attached;
    } catch (IOException | InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Starts a server, which the stand-in does not do by itself. Once the server has run long enough
   * for the seat to know it, terminates it and its clients as a client's fault would. Always
   * returns false.
   */
  private static boolean fault(String pipes, List<ProcessHandle> clients) {
    try {
      long server = server(pipes, "get_server_list");
      if (server == 0) {
        server = server(pipes, "start_server -uid 0\nget_server_list");
      }
      Instant known = Instant.now().minusSeconds(5);
      if (ProcessHandle.of(server)
          .flatMap(process -> process.info().startInstant())
          .filter(known::isAfter)
          .isPresent()) {
        for (ProcessHandle client : clients) {
          if (client.isAlive()) {
            CommandNode.signalProcess("SEGV", client.pid());
          }
        }
        CommandNode.signalProcess("KILL", server);
      }
      return false;
    } catch (IOException | InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static long server(String pipes, String commands)
      throws IOException, InterruptedException {
    Path tool = ServiceLoader.load(GpuDriver.class).findFirst().orElseThrow().mpsControl().get();
    ProcessBuilder builder = new ProcessBuilder(tool.toString());
    builder.environment().put("CUDA_MPS_PIPE_DIRECTORY", pipes);
    Process process = builder.start();
    try (OutputStream to = process.getOutputStream()) {
      to.write((commands + "\n").getBytes(UTF_8));
    }
    String said = new String(process.getInputStream().readAllBytes(), UTF_8).strip();
    assertThat(process.waitFor()).as(said).isZero();
    return said.isEmpty() ? 0 : Long.parseLong(said);
  }
}
