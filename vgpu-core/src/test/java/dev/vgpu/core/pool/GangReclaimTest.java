package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.timeout;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuSettings;
import dev.vgpu.GpuSuspendException;
import dev.vgpu.MemoryReservation;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.spi.MemoryMover;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A gang whose memory can be moved out, on two GPUs of 1,000 MiB each. */
@Timeout(60)
class GangReclaimTest {
  private static final GpuSettings SETTINGS =
      GpuSettings.builder()
          .memoryOversubscriptionPercent(200)
          .memoryWatermarks(10, 20)
          .memoryForecast(Duration.ZERO)
          .reclaimAskTimeout(Duration.ZERO)
          .reclaimHoldBack(Duration.ZERO)
          .build();

  private final FakeBackend backend = new FakeBackend();
  private final MemoryMover mover = mock(MemoryMover.class);
  private Path directory;
  private GpuPool pool;
  private VirtualGpu gang;
  private FakeBackend.FakeLease lease;
  private Process program;

  @BeforeEach
  void open() throws IOException {
    directory = Files.createTempDirectory("vg");
    pool =
        new NodeRegistry(Map.of(), () -> List.of(backend))
            .openPool(
                GpuPoolOptions.builder()
                    .runDirectory(directory)
                    .gpus(Pools.gpus(2))
                    .gpuSettings(SETTINGS)
                    .build(),
                new Discovery(List.of()),
                NanoClock.SYSTEM);
    when(mover.moved()).thenReturn(MemorySize.ofMebibytes(200));
    gang = pool.acquire(Pools.request(OFFLINE).gpuCount(2).build());
    assertThat(gang.environment()).isNotEmpty();
    lease = backend.leases.get(gang.id());
    lease.mover = Optional.of(mover);
    program = new ProcessBuilder("sleep", "300").start();
    lease.attach(program.pid());
  }

  @AfterEach
  void close() throws IOException {
    lease.exit(program.pid());
    program.destroyForcibly();
    pool.close();
    Pools.delete(directory);
  }

  @Test
  void comesBackOnlyWhenAllItsGpusHaveRoom() throws Exception {
    VirtualGpu large =
        pool.acquire(
            Pools.request(PreemptionClass.ONLINE).memory(MemorySize.ofMebibytes(950)).build());
    lease.usedBytes = MemorySize.ofMebibytes(200).bytes();
    MemoryReservation weights = large.tryReserve(MemorySize.ofMebibytes(950)).orElseThrow();
    verify(mover, timeout(20_000)).moveOut(any(), any());
    AtomicInteger looks = new AtomicInteger();
    lease.visible =
        () -> {
          looks.incrementAndGet();
          return lease.processes();
        };
    Pools.await(() -> looks.get() >= 20); // its other GPU has had room all the time
    verify(mover, never()).moveBack(any());
    weights.close();
    verify(mover, timeout(20_000)).moveBack(any());
    Pools.await(() -> !pool.leases().get(0).isSuspended());
  }

  @Test
  void goesOnWithoutAMoveIfItsWorkDoesNotEndInTime() throws Exception {
    gang.resume();
    try (var turn = gang.enter()) {
      assertThat(turn.isYieldRequested()).isFalse();
      assertThatThrownBy(() -> gang.suspend(Duration.ofMillis(1)))
          .isInstanceOf(GpuSuspendException.class)
          .hasMessageContaining("has not ended within 1 ms");
    }
    verify(mover, never()).moveOut(any(), any());
    verify(mover, never()).moveBack(any());
    assertThat(pool.leases().get(0).isSuspended()).isFalse();
  }
}
