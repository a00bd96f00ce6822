package dev.vgpu.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.cli.CommandNode;
import dev.vgpu.cli.CommandNode.Command;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Reclaims memory from real programs over the emulator: GPUs of 4 GiB, with a low watermark of 410
 * MiB and a high one of 819 MiB.
 */
class ReclaimIT {
  private static final String OFFLINE = "--gpu 0 --class offline --name batch --memory 2GiB";
  private static final String ONLINE = "--gpu 0 --class online --name online --memory 3500MiB";

  private CommandNode node;

  @BeforeEach
  void open() throws IOException {
    node = CommandNode.open();
  }

  @AfterEach
  void close() throws IOException {
    node.close();
  }

  private Command serve(String... more) throws Exception {
    return serveWith("--reclaim-hold-back=1s", "--reclaim-end=500ms", more);
  }

  private Command serveWith(String holdBack, String end, String... more) throws Exception {
    List<String> arguments =
        new ArrayList<>(
            List.of(
                "serve",
                "--oversubscribe=150",
                "--memory-low=10",
                "--memory-high=20",
                "--memory-forecast=0s",
                holdBack,
                end));
    arguments.addAll(List.of(more));
    return node.vgpu(arguments.toArray(String[]::new)).prints("holding the seat");
  }

  /** Fills 512 MiB and holds it until it is told to end, then checks the contents. */
  private Command batch() throws Exception {
    return node.run(
            OFFLINE,
            CommandNode.program("hoard"),
            "--chunk=64MiB",
            "--limit=512MiB",
            "--check",
            "--hold=60")
        .prints("536870912 bytes");
  }

  /** Takes so much memory that, beside the batch program, less than the low watermark is left. */
  private Command online() throws Exception {
    return node.run(ONLINE, CommandNode.program("hoard"), "--limit=3100MiB", "--hold=60")
        .prints("3250585600 bytes");
  }

  /** Asks the program to end; hoard then does what it does at the end of its time. */
  private static void end(Command command) throws Exception {
    command.signal("TERM");
    Command ignored = command.succeeds();
  }

  private JsonNode lease(String name) throws Exception {
    for (JsonNode lease : node.leases()) {
      if (lease.path("name").asText().equals(name)) {
        return lease;
      }
    }
    throw new AssertionError("no lease of " + name);
  }

  @Test
  void offlineProgramIsSuspendedForAnOnlineOneAndGoesOnWithItsDataIntact() throws Exception {
    Command serve = serve();
    Command batch = batch();
    Command online = online();
    CommandNode.await(() -> batch.err().contains("is suspended"), serve);
    assertThat(batch.err()).contains("below the low watermark 409MiB", "it is offline");
    assertThat(lease("batch").path("suspended").asBoolean()).isTrue();
    assertThat(lease("online").path("suspended").asBoolean()).isFalse();
    assertThat(batch.out()).doesNotContain("as it was written");
    end(online);
    CommandNode.await(() -> batch.err().contains("is resumed: "), serve);
    assertThat(batch.err()).contains("the high watermark 819MiB");
    end(batch);
    assertThat(batch.out()).contains("all memory is as it was written");
  }

  @Test
  void programThatCannotBeSuspendedIsEndedAndHeldBack() throws Exception {
    // What batch held would be enough for another one: the next command comes before this time.
    // Batch checks its contents before it ends, which takes long on a busy machine.
    Command serve =
        serveWith("--reclaim-hold-back=15s", "--reclaim-end=30s", "--reclaim-suspend=0s");
    Command batch = batch();
    Command online = online();
    assertThat(batch.succeeds().err())
        .contains("is ended to get its memory back", "it cannot be suspended");
    Command again = node.run(OFFLINE, "true");
    assertThat(again.exitCode()).as("%s", serve).isEqualTo(75);
    assertThat(again.err()).contains("held back until memory has been free again", "name=batch");
    Command waits = node.run(OFFLINE + " --wait 50s", "true");
    end(online);
    Command ignored = waits.succeeds();
  }

  @Test
  void programThatResistsIsKilled() throws Exception {
    Command serve = serve("--reclaim-suspend=300ms");
    Command batch = batch();
    long pid = lease("batch").path("pids").path(0).asLong();
    CommandNode.signalProcess("STOP", pid);
    Command online = online();
    assertThat(batch.exitCode()).as("%s", serve).isEqualTo(137);
    assertThat(batch.err()).contains("could not be suspended", "did not terminate within 500 ms");
    end(online);
  }

  @Test
  void programThatIsKilledWhileSuspendedLeavesNothing() throws Exception {
    Command serve = serve();
    Command batch = batch();
    Command online = online();
    CommandNode.await(() -> batch.err().contains("is suspended"), serve);
    CommandNode.signalProcess("KILL", lease("batch").path("pids").path(0).asLong());
    assertThat(batch.exitCode()).as("%s", serve).isEqualTo(137);
    end(online);
    // The GPU's own accounting says that not one byte is held.
    Command all =
        node.run(
            "--gpu 0 --class online --name all --memory 4GiB",
            CommandNode.program("hoard"),
            "--least=1MiB");
    assertThat(all.succeeds().out()).contains(((4096L - 64) << 20) + " bytes");
  }

  @Test
  void nextHolderOfTheSeatLetsThoseGoOnThatTheLastOneHasSuspended() throws Exception {
    Command serve = serve();
    Command batch = batch();
    Command online = online();
    CommandNode.await(() -> batch.err().contains("is suspended"), serve);
    serve.signal("KILL");
    // Asks any holder of the seat: first it is one of the two commands that started a program,
    // later perhaps the other.
    assertThat(lease("batch").path("suspended").asBoolean()).isTrue();
    end(online);
    CommandNode.await(() -> !isSuspended("batch"), batch);
    end(batch);
    assertThat(batch.out()).contains("all memory is as it was written");
  }

  private boolean isSuspended(String name) {
    try {
      return lease(name).path("suspended").asBoolean();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void onlineQuotasAreNeverOversubscribed() throws Exception {
    Command serve = serve();
    Command first = online();
    Command second = node.run("--gpu 0 --class online --memory 1GiB", "true");
    assertThat(second.exitCode()).as("%s", serve).isEqualTo(75);
    node.run("--gpu 0 --class nearline --memory 2GiB", "true").succeeds();
    assertThat(node.run("--gpu 0 --class nearline --memory 3GiB", "true").exitCode()).isEqualTo(75);
    first.signal("TERM");
  }
}
