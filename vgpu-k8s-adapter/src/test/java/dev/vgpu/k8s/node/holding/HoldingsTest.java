package dev.vgpu.k8s.node.holding;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.k8s.node.TestNode;
import dev.vgpu.k8s.node.holding.Holding.Part;
import dev.vgpu.k8s.node.holding.Holding.PoolDevice;
import dev.vgpu.k8s.node.holding.Holding.Stage;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HoldingsTest {
  @TempDir private Path directory;
  private TestNode node;

  @BeforeEach
  void open() throws IOException {
    node = new TestNode();
  }

  @AfterEach
  void close() throws IOException {
    node.close();
  }

  private Holdings holdings(GpuPool pool) throws IOException {
    return new Holdings(pool, directory.resolve("held"), directory.resolve("cdi"), step -> {});
  }

  private static Holding slot(String key, String pod, GpuId gpu) {
    Terms terms =
        new Terms(
            List.of(gpu),
            Optional.empty(),
            OptionalInt.of(30),
            MemorySize.ofGibibytes(1),
            SharePolicy.BURST_SHARE,
            PreemptionClass.ONLINE,
            Capabilities.FaultIsolation.NONE,
            Capabilities.Compute.NONE);
    return new Holding(
        key,
        Stage.TAKING,
        new Holding.Owner("team", pod, Optional.of("uid-" + pod), Optional.of("main")),
        List.of(
            new Part(
                key,
                key,
                List.of(new PoolDevice(key, Optional.empty())),
                terms,
                Optional.empty())));
  }

  /** It was seen to have ended while the kubelet gave its slot to another one. */
  @Test
  void anOwnerThatHasEndedGivesBackNothingOfTheNextOne() throws IOException {
    Holdings holdings = holdings(node.pool);
    GpuId gpu = node.pool.gpus().get(0).id();
    Holding old = holdings.take(slot("slot-1", "old", gpu));
    Holding next = holdings.take(slot("slot-1", "next", gpu));
    holdings.giveBack("slot-1", old.owner());
    assertThat(holdings.all()).containsExactly(next);
    assertThat(node.pool.leases()).hasSize(1);
    holdings.giveBack("slot-1", next.owner());
    assertThat(holdings.all()).isEmpty();
    assertThat(node.pool.leases()).isEmpty();
  }

  /** Somebody asked for it after the API server had been asked about it. */
  @Test
  void whatIsTakenAgainMeanwhileIsNotGivenBack() throws IOException {
    Holding wanted = slot("slot-1", "a", node.pool.gpus().get(0).id());
    Holding first = holdings(node.pool).take(wanted);
    Holdings holdings = holdings(node.pool);
    holdings.replay(holding -> true);
    boolean isChanged =
        holdings.settle(
            holding -> {
              assertThat(holdings.take(wanted).key()).isEqualTo(first.key());
              return false;
            });
    assertThat(isChanged).isFalse();
    assertThat(holdings.all()).hasSize(1);
    assertThat(
            holdings.settle(
                holding -> {
                  throw new AssertionError("it is in use");
                }))
        .isFalse();
  }

  @Test
  void whatCannotBeToldIsKeptAndAskedAboutAgain() throws IOException {
    Holding first = holdings(node.pool).take(slot("slot-1", "a", node.pool.gpus().get(0).id()));
    Holdings holdings = holdings(node.pool);
    holdings.replay(holding -> true);
    assertThatThrownBy(
            () ->
                holdings.settle(
                    holding -> {
                      throw new IOException("away");
                    }))
        .hasMessage("away");
    assertThat(holdings.all()).map(Holding::key).containsExactly(first.key());
    assertThat(holdings.settle(holding -> false)).isTrue();
    assertThat(holdings.all()).isEmpty();
    assertThat(holdings.settle(holding -> false)).isFalse();
  }

  @Test
  void aGpuThatWasReplacedWhileTheMachineWasOffKeepsNoOtherFromItsPods() throws IOException {
    Holdings before = holdings(node.pool);
    GpuId gone = node.pool.gpus().get(0).id();
    Holding lost = before.take(slot("slot-1", "a", gone));
    Holding kept = before.take(slot("slot-2", "b", node.pool.gpus().get(1).id()));
    node.pool.close();
    Path record = directory.resolve("held").resolve(lost.key() + ".json");
    String text = Files.readString(record, UTF_8);
    assertThat(text).contains(gone.value());
    Files.writeString(
        record, text.replace(gone.value(), "GPU-00000000-0000-0000-0000-000000000000"));
    GpuPoolOptions options = GpuPoolOptions.builder().runDirectory(node.runDirectory()).build();
    try (GpuPool pool = GpuPool.open(options)) {
      Holdings after = holdings(pool);
      after.replay(holding -> true);
      assertThat(after.all()).map(Holding::key).containsExactlyInAnyOrder("slot-1", "slot-2");
      assertThat(pool.leases()).hasSize(1);
      after.giveBack(lost.key());
      after.giveBack(kept.key());
      assertThat(after.all()).isEmpty();
    }
  }
}
