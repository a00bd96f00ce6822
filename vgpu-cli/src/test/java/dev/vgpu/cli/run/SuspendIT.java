package dev.vgpu.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.cli.CommandNode;
import dev.vgpu.cli.CommandNode.Command;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Suspends and resumes programs by command, with the emulator's own checkpoint functions: GPUs of 4
 * GiB.
 */
class SuspendIT {
  private static final String OFFLINE = "--gpu 0 --class offline --name train --memory 2GiB";
  private static final String ONLINE = "--gpu 0 --class online --name online --memory 3600MiB";

  private CommandNode node;

  @BeforeEach
  void open() throws IOException {
    node = CommandNode.open();
  }

  @AfterEach
  void close() throws IOException {
    node.close();
  }

  private Command serve() throws Exception {
    return node.vgpu("serve", "--oversubscribe=150").prints("holding the seat");
  }

  /** Fills 512 MiB and holds it until it is told to end, then checks the contents. */
  private Command hoard(String... more) throws Exception {
    String[] program = {
      CommandNode.program("hoard"), "--chunk=64MiB", "--limit=512MiB", "--check", "--hold=600"
    };
    String[] all = java.util.Arrays.copyOf(program, program.length + more.length);
    System.arraycopy(more, 0, all, program.length, more.length);
    return node.run(OFFLINE, all).prints("536870912 bytes");
  }

  private static void endsWithItsDataIntact(Command hoard) throws Exception {
    hoard.signal("TERM");
    assertThat(hoard.succeeds().out()).contains("all memory is as it was written");
  }

  private JsonNode lease(String name) throws Exception {
    for (JsonNode lease : node.leases()) {
      if (lease.path("name").asText().equals(name)) {
        return lease;
      }
    }
    throw new AssertionError("no lease of " + name);
  }

  private boolean isSuspended(String name) throws Exception {
    return lease(name).path("suspended").asBoolean();
  }

  /**
   * A training program is suspended between two steps. Its results before and after are right,
   * although another program used the memory meanwhile.
   */
  @Test
  void trainingGoesOnWithRightResultsAfterAnOnlineProgramHadItsMemory() throws Exception {
    Command serve = serve();
    Command hoard = hoard();
    Command train =
        node.run(
            OFFLINE.replace("train", "steps").replace("2GiB", "256MiB"),
            CommandNode.program("sgemm"),
            "--seconds=60",
            "--m=64",
            "--n=64",
            "--k=64");
    CommandNode.await(() -> launches("steps") > 100, train);
    assertThat(node.vgpu("suspend", "train", "--json").succeeds().json().path("state").asText())
        .isEqualTo("suspended");
    Command again = node.vgpu("suspend", "steps").succeeds();
    assertThat(again.out()).contains("steps-", "suspended");
    JsonNode lease = lease("train");
    assertThat(lease.path("suspended").asBoolean()).isTrue();
    assertThat(lease.path("memory_suspended_bytes").asLong())
        .isEqualTo(lease.path("memory_used_bytes").asLong())
        .isEqualTo((512 << 20) + CommandNode.CONTEXT_BYTES);
    assertThat(node.vgpu("ls").succeeds().out()).contains("suspended");

    Command online =
        node.run(ONLINE, CommandNode.program("hoard"), "--limit=3520MiB", "--hold=600");
    online.prints("3690987520 bytes");
    long before = settledLaunches("steps");
    Command early = node.vgpu("resume", "train", "--timeout", "2s");
    assertThat(early.exitCode()).as("%s", early).isEqualTo(1);
    assertThat(early.err()).contains("no room for its memory");
    assertThat(isSuspended("train")).isTrue();
    assertThat(launches("steps")).isEqualTo(before);
    online.signal("TERM");
    Command ignored = online.succeeds();

    node.vgpu("resume", "train").succeeds();
    node.vgpu("resume", "steps").succeeds();
    assertThat(isSuspended("train")).isFalse();
    CommandNode.await(() -> launches("steps") > before, train);
    train.signal("TERM");
    assertThat(train.succeeds().out()).as("%s", serve).contains("correct");
    endsWithItsDataIntact(hoard);
  }

  /** The last launches of a suspended program may be counted after it was locked. */
  private long settledLaunches(String name) throws Exception {
    AtomicLong last = new AtomicLong(-1);
    CommandNode.await(
        () -> {
          long now = launches(name);
          return last.getAndSet(now) == now;
        },
        name);
    return last.get();
  }

  private long launches(String name) {
    try {
      for (JsonNode lease : node.leases()) {
        if (lease.path("name").asText().equals(name)) {
          return lease.path("launches").asLong();
        }
      }
      return 0;
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  /** A process that starts under a suspended virtual GPU attaches only after its resumption. */
  @Test
  void processThatAttachesToWhatIsSuspendedTakesNothingUntilItGoesOn() throws Exception {
    Command serve = serve();
    Path file = node.runDirectory().resolveSibling("go");
    String script =
        CommandNode.program("hoard")
            + " --chunk=64MiB --limit=512MiB --check --hold=600 & first=$!;"
            + (" while [ ! -e " + file + " ]; do sleep 0.05; done; ")
            + CommandNode.program("spin")
            + " --us=200 --count=50; kill -TERM $first; wait $first";
    Command run = node.run(OFFLINE, "sh", "-c", script).prints("536870912 bytes");
    node.vgpu("suspend", "train").succeeds();
    Files.createFile(file);
    CommandNode.await(() -> processes() == 2, run);
    assertTrainHasOneContextAndIsSuspended();

    // The next holder of the seat must not take it for half suspended.
    serve.signal("KILL");
    assertTrainHasOneContextAndIsSuspended();
    assertThat(processes()).isEqualTo(2);
    assertThat(run.out()).doesNotContain("kernels");

    node.vgpu("resume", "train").succeeds();
    assertThat(run.succeeds().out()).contains("50 kernels", "all memory is as it was written");
  }

  private void assertTrainHasOneContextAndIsSuspended() throws Exception {
    JsonNode lease = lease("train");
    assertThat(lease.path("suspended").asBoolean()).isTrue();
    assertThat(lease.path("memory_used_bytes").asLong())
        .isEqualTo((512 << 20) + CommandNode.CONTEXT_BYTES);
    assertThat(lease.path("launches").asLong()).isZero();
  }

  private int processes() {
    try {
      return lease("train").path("pids").size();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  /** The driver leaves the process locked after the refusal; vgpu must unlock it. */
  @Test
  void programWithManagedMemoryIsRefusedWithTheReasonAndGoesOn() throws Exception {
    Command serve = serve();
    Command hoard = hoard("--mode=managed");
    Command refused = node.vgpu("suspend", "train");
    assertThat(refused.exitCode()).as("%s", serve).isEqualTo(1);
    assertThat(refused.err()).contains("managed memory", "CUDA_ERROR_NOT_SUPPORTED");
    assertThat(isSuspended("train")).isFalse();
    endsWithItsDataIntact(hoard);
  }

  @Test
  void stoppedProgramIsGivenUpInTimeAndGoesOn() throws Exception {
    Command serve = serve();
    Command hoard = hoard();
    long pid = lease("train").path("pids").path(0).asLong();
    CommandNode.signalProcess("STOP", pid);
    Command late = node.vgpu("suspend", "train", "--timeout=300ms");
    assertThat(late.exitCode()).as("%s", serve).isEqualTo(1);
    assertThat(late.err()).contains("is it stopped");
    CommandNode.signalProcess("CONT", pid);
    assertThat(isSuspended("train")).isFalse();
    endsWithItsDataIntact(hoard);
  }

  /** The process is locked, and the holder that knew of it is dead. */
  @Test
  void nextHolderOfTheSeatUnlocksWhomTheLastOneWasSuspendingWhenItWasKilled() throws Exception {
    Command serve =
        node.vgpuWith(
                List.of("VGPU_EMULATOR_CHECKPOINT=checkpoint:hang"), "serve", "--oversubscribe=150")
            .prints("holding the seat");
    Command hoard = hoard();
    Command asks = node.vgpu("suspend", "train");
    CommandNode.await(
        () ->
            serve.descendants().stream()
                .anyMatch(
                    child ->
                        child
                            .info()
                            .arguments()
                            .map(words -> List.of(words).contains("checkpoint"))
                            .orElse(false)),
        asks);
    serve.signal("KILL");
    // The next holder first undoes the half-done suspension; then the repeated request succeeds.
    assertThat(asks.succeeds().out()).contains("suspended");
    // Stays suspended even if the seat changes hands once more, because its owner asked for it.
    assertThat(isSuspended("train")).isTrue();
    node.vgpu("resume", "train").succeeds();
    assertThat(isSuspended("train")).isFalse();
    endsWithItsDataIntact(hoard);
  }

  /**
   * The context and allocations smaller than a page of the GPU stay; all other memory is moved off
   * and back.
   */
  @Test
  void movableMemoryLeavesForAnOnlineProgramAndComesBackAsItWas() throws Exception {
    Command serve = serve();
    Command hoard = movable();
    assertThat(node.vgpu("suspend", "train").succeeds().out()).contains("suspended");
    JsonNode lease = lease("train");
    assertThat(lease.path("memory_suspended_bytes").asLong()).isEqualTo(512 << 20);
    assertThat(lease.path("memory_used_bytes").asLong())
        .isEqualTo((512 << 20) + CommandNode.CONTEXT_BYTES);
    Command online =
        node.run(ONLINE, CommandNode.program("hoard"), "--limit=3520MiB", "--hold=600")
            .prints("3690987520 bytes");
    Command early = node.vgpu("resume", "train", "--timeout=5s");
    assertThat(early.exitCode()).as("%s", early).isEqualTo(1);
    assertThat(early.err()).contains("no room for its memory");
    online.signal("TERM");
    Command ignored = online.succeeds();
    node.vgpu("resume", "train").succeeds();
    assertThat(lease("train").path("memory_suspended_bytes").asLong()).isZero();
    assertThat(isSuspended("train")).as("%s", serve).isFalse();
    endsWithItsDataIntact(hoard);
  }

  private Command movable() throws Exception {
    return node.run(
            OFFLINE + " --movable",
            CommandNode.program("hoard"),
            "--chunk=64MiB",
            "--limit=512MiB",
            "--check",
            "--hold=600")
        .prints("536870912 bytes");
  }

  /** The third unmapping on the way out fails, and the third mapping on the way back. */
  @Test
  void driversErrorsOnTheWayLoseNothing() throws Exception {
    Command serve = serve();
    Command hoard =
        node.vgpuWith(
                List.of("VGPU_EMULATOR_FAIL=cuMemUnmap:999@3,cuMemMap:999@13"),
                ("run " + OFFLINE + " --movable -- " + CommandNode.program("hoard"))
                    .concat(" --chunk=64MiB --limit=512MiB --check --hold=600")
                    .split(" "))
            .prints("536870912 bytes");
    Command first = node.vgpu("suspend", "train");
    assertThat(first.exitCode()).as("%s", first).isEqualTo(1);
    assertThat(first.err()).contains("CUDA error 999");
    assertThat(isSuspended("train")).isFalse();
    node.vgpu("suspend", "train").succeeds();
    assertThat(node.vgpu("resume", "train").exitCode()).isEqualTo(1);
    assertThat(awayBytes()).isEqualTo(512 << 20);
    node.vgpu("resume", "train").succeeds();
    assertThat(awayBytes()).as("%s", serve).isZero();
    endsWithItsDataIntact(hoard);
  }

  @Test
  void movedMemoryStaysAwayWhenTheSeatChangesHands() throws Exception {
    Command serve = serve();
    Command hoard = movable();
    node.vgpu("suspend", "train").succeeds();
    serve.signal("KILL");
    assertThat(isSuspended("train")).isTrue();
    CommandNode.await(() -> awayBytes() == 512 << 20, hoard);
    node.vgpu("resume", "train").succeeds();
    assertThat(awayBytes()).isZero();
    endsWithItsDataIntact(hoard);
  }

  private long awayBytes() {
    try {
      return lease("train").path("memory_suspended_bytes").asLong();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void onlyOfflineProgramsMayHaveMovableMemory() throws Exception {
    Command refused = node.run("--memory 1GiB --movable", "true");
    assertThat(refused.exitCode()).isNotZero();
    assertThat(refused.err()).contains("movable memory needs class OFFLINE");
  }

  @Test
  void whatIsNotThereIsNamed() throws Exception {
    Command none = node.vgpu("suspend", "nobody");
    assertThat(none.exitCode()).isEqualTo(1);
    assertThat(none.err()).contains("no virtual GPU is called nobody");
    assertThat(node.vgpu("resume").exitCode()).isEqualTo(2);
  }
}
