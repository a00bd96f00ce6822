package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.RETURNS_DEEP_STUBS;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.Enforcements;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.pool.Pools;
import dev.vgpu.request.Capabilities;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.mockito.ArgumentCaptor;

/** A client of the seat takes an empty run directory's seat over. */
@Timeout(60)
class RehearsalTest {
  private final PhysicalGpu gpu = Pools.gpus(1).get(0);
  private final EnforcementBackend backend = mock();
  private final Enforcement enforcement = mock();
  private final Node node =
      new Node(PoolSettings.from(GpuPoolOptions.defaults()), NanoClock.SYSTEM, ended -> {});

  @BeforeEach
  void install() {
    node.manage(List.of(gpu), node.settings());
    when(backend.name()).thenReturn("named");
    Capabilities capabilities = Capabilities.builder().build();
    when(backend.capabilities()).thenReturn(capabilities);
    when(backend.status()).thenReturn(BackendStatus.ofAvailable("named", capabilities));
    when(backend.serves(any())).thenReturn(true);
    when(backend.needs()).thenReturn(Optional.empty());
    when(backend.open(any())).thenReturn(enforcement);
    when(enforcement.prepare(any(), any(), any(), any(), any()))
        .thenReturn(mock(EnforcedLease.class, RETURNS_DEEP_STUBS));
  }

  @AfterEach
  void shutDown() {
    node.shutDown();
    node.awaitEnd();
  }

  private void rehearse() throws Exception {
    Enforcements none = Enforcements.in(Path.of("/nowhere"), () -> List.of(backend));
    new Rehearsal(node, new Discovery(List.of()), none).takeOver();
  }

  @Test
  void leaseOfBackendThatKeepsToTheDirectoryIsPreparedThereAndNothingIsLeft() throws Exception {
    when(backend.keepsToRunDirectory()).thenReturn(true);
    rehearse();
    ArgumentCaptor<Path> opened = ArgumentCaptor.forClass(Path.class);
    verify(backend).open(opened.capture());
    verify(enforcement)
        .prepare(
            eq("rehearsal-1"),
            eq(opened.getValue().resolve("leases/rehearsal-1")),
            eq(gpu),
            any(),
            any());
    verify(enforcement).close();
    assertThat(opened.getValue()).doesNotExist();
  }

  @Test
  void backendThatChangesOtherThingsIsNotOpened() throws Exception {
    rehearse();
    verify(backend, never()).open(any());
  }

  /** In each pause, a thread waits as long as the next of these for a processor. */
  private static int pausesWith(Long... waits) {
    Iterator<Long> next = List.of(waits).iterator();
    AtomicInteger pauses = new AtomicInteger();
    assertThat(
            Rehearsal.awaitRest(
                ns -> pauses.incrementAndGet() < 0, () -> next.hasNext() ? next.next() : 0))
        .isTrue();
    return pauses.get();
  }

  /** A command that lists something is over by then. */
  @Test
  void aProgramThatWaitsForTheProcessorsIsLetGoFirst() {
    long most = Rehearsal.MOST_WAITED_NS;
    assertThat(pausesWith(0L, most)).isEqualTo(1);
    assertThat(pausesWith(0L, most + 1, 2 * most, most)).isEqualTo(3);
  }

  @Test
  void onAMachineThatStaysBusyItIsRehearsedInTheEnd() {
    Long[] waits = new Long[2 * Rehearsal.MOST_PAUSES];
    Arrays.fill(waits, Rehearsal.AFTER_NS);
    assertThat(pausesWith(waits)).isEqualTo(Rehearsal.MOST_PAUSES);
  }

  @Test
  void aPoolThatIsClosedMeanwhileRehearsesNothing() {
    assertThat(Rehearsal.awaitRest(ns -> true, () -> 0)).isFalse();
  }
}
