package dev.vgpu.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.cli.CommandNode.Command;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Memory that is taken back from real programs over the emulator: GPUs of 4 GiB, of which 410 MiB
 * is the low watermark and 819 MiB the high one.
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
    List<String> arguments =
        new ArrayList<>(
            List.of(
                "serve",
                "--oversubscribe=150",
                "--memory-low=10",
                "--memory-high=20",
                "--memory-forecast=0s",
                "--reclaim-hold-back=1s",
                "--reclaim-end=500ms"));
    arguments.addAll(List.of(more));
    return node.vgpu(arguments.toArray(String[]::new)).prints("holding the seat");
  }

  /** Holds 512 MiB with something in it. */
  private Command batch(double seconds) throws Exception {
    return node.run(
            OFFLINE,
            CommandNode.program("hoard"),
            "--chunk=64MiB",
            "--limit=512MiB",
            "--check",
            "--hold=" + seconds)
        .prints("536870912 bytes");
  }

  /** Takes so much that less than the low watermark is left beside that. */
  private Command online(double seconds) throws Exception {
    return node.run(ONLINE, CommandNode.program("hoard"), "--limit=3100MiB", "--hold=" + seconds)
        .prints("3250585600 bytes");
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
    Command batch = batch(0.5);
    Command online = online(3);
    CommandNode.await(() -> batch.err().contains("is suspended"), serve);
    assertThat(batch.err()).contains("below the low watermark 409MiB", "it is offline");
    assertThat(lease("batch").path("suspended").asBoolean()).isTrue();
    assertThat(lease("online").path("suspended").asBoolean()).isFalse();
    assertThat(batch.out()).doesNotContain("as it was written");
    online.succeeds();
    assertThat(batch.succeeds().out()).contains("all memory is as it was written");
    assertThat(batch.err()).contains("goes on", "the high watermark 819MiB");
  }

  @Test
  void programThatCannotBeSuspendedIsEndedAndHeldBack() throws Exception {
    Command serve = serve("--reclaim-suspend=0s");
    Command batch = batch(60);
    Command online = online(2);
    assertThat(batch.succeeds().err())
        .contains("is ended to get its memory back", "it cannot be suspended");
    Command again = node.run(OFFLINE, "true");
    assertThat(again.exitCode()).as("%s", serve).isEqualTo(75);
    assertThat(again.err()).contains("held back until memory has been free again", "name=batch");
    Command waits = node.run(OFFLINE + " --wait 30s", "true");
    online.succeeds();
    waits.succeeds();
  }

  @Test
  void programThatResistsIsKilled() throws Exception {
    Command serve = serve("--reclaim-suspend=300ms");
    Command batch = batch(60);
    long pid = lease("batch").path("pids").path(0).asLong();
    CommandNode.signalProcess("STOP", pid);
    Command online = online(1);
    assertThat(batch.exitCode()).as("%s", serve).isEqualTo(137);
    assertThat(batch.err()).contains("could not be suspended", "not within 500 ms");
    online.succeeds();
  }

  @Test
  void programThatIsKilledWhileSuspendedLeavesNothing() throws Exception {
    Command serve = serve();
    Command batch = batch(60);
    Command online = online(60);
    CommandNode.await(() -> batch.err().contains("is suspended"), serve);
    CommandNode.signalProcess("KILL", lease("batch").path("pids").path(0).asLong());
    assertThat(batch.exitCode()).as("%s", serve).isEqualTo(137);
    online.signal("TERM");
    assertThat(online.exitCode()).as("%s", online).isZero();
    // To the last byte: the GPU's own account says that nothing is held.
    Command all =
        node.run(
            "--gpu 0 --class online --name all --memory 4GiB",
            CommandNode.program("hoard"),
            "--least=1MiB");
    assertThat(all.succeeds().out()).contains(((4096L - 64) << 20) + " bytes");
  }

  @Test
  void nextHolderOfTheSeatLetsThoseGoOnThatTheLastOneHasSuspended() throws Exception {
    Command first = serve();
    Command batch = batch(0.5);
    Command online = online(3);
    CommandNode.await(() -> batch.err().contains("is suspended"), first);
    Command second = serveBeside();
    first.signal("KILL");
    online.succeeds();
    assertThat(batch.succeeds().out()).as("%s", second).contains("as it was written");
  }

  private Command serveBeside() throws Exception {
    return node.vgpu(
            "serve",
            "--oversubscribe=150",
            "--memory-low=10",
            "--memory-high=20",
            "--memory-forecast=0s",
            "--reclaim-hold-back=1s",
            "--reclaim-end=500ms")
        .prints("standing by");
  }

  @Test
  void onlineQuotasAreNeverOversubscribed() throws Exception {
    Command serve = serve();
    Command first = online(60);
    Command second = node.run("--gpu 0 --class online --memory 1GiB", "true");
    assertThat(second.exitCode()).as("%s", serve).isEqualTo(75);
    node.run("--gpu 0 --class nearline --memory 2GiB", "true").succeeds();
    assertThat(node.run("--gpu 0 --class nearline --memory 3GiB", "true").exitCode()).isEqualTo(75);
    first.signal("TERM");
  }
}
