package dev.vgpu.k8s.node.dra;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import dev.vgpu.GpuPool;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.socket.UnixChannel;
import dev.vgpu.k8s.node.socket.UnixServer;
import dev.vgpu.k8s.proto.drahealth.DRAResourceHealthGrpc;
import dev.vgpu.k8s.proto.drahealth.DeviceHealth;
import dev.vgpu.k8s.proto.drahealth.HealthStatus;
import dev.vgpu.k8s.proto.drahealth.NodeWatchResourcesRequest;
import dev.vgpu.k8s.proto.drahealth.NodeWatchResourcesResponse;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.PhysicalGpu;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the kubelet is told of the GPUs' health, over a real socket. */
class HealthWatchTest {
  private static final GpuId GPU = new GpuId("GPU-1");
  private static final Instant NOW = Instant.ofEpochSecond(1_800_000_000);

  @TempDir Path directory;
  private final GpuPool pool = mock(GpuPool.class);
  private final GpuState state = mock(GpuState.class);
  private final GpuReading reading = mock(GpuReading.class);
  private final GpuConditions conditions = new GpuConditions(pool);
  private final HealthWatch watch =
      new HealthWatch(
          new NodeDevices(pool, conditions, "n"),
          conditions,
          "n",
          () -> NOW.atZone(ZoneOffset.UTC));
  private UnixServer.Threads threads;
  private UnixServer server;
  private ManagedChannel channel;

  @BeforeEach
  void open() throws Exception {
    PhysicalGpu gpu = mock(PhysicalGpu.class);
    when(gpu.id()).thenReturn(GPU);
    when(gpu.unusableAsWhole()).thenReturn(Optional.empty());
    when(pool.gpus()).thenReturn(List.of(gpu));
    when(pool.states()).thenReturn(List.of(state));
    when(pool.readings()).thenReturn(List.of(reading));
    when(state.gpu()).thenReturn(GPU);
    when(reading.gpu()).thenReturn(GPU);
    reads(GpuHealth.HEALTHY, "");
    is(GpuHealth.HEALTHY, "");
    watch.tell();
    threads = UnixServer.Threads.open(2);
    server = UnixServer.open(directory.resolve("s"), threads, watch);
    channel = UnixChannel.to(directory.resolve("s"), threads);
  }

  @AfterEach
  void close() {
    channel.shutdownNow();
    server.close();
    threads.close();
  }

  private void is(GpuHealth health, String reason) {
    when(state.health()).thenReturn(health);
    when(state.healthReason()).thenReturn(reason);
  }

  private void reads(GpuHealth health, String reason) {
    when(reading.health()).thenReturn(health);
    when(reading.healthReason()).thenReturn(reason);
  }

  private Iterator<NodeWatchResourcesResponse> watcher() {
    return DRAResourceHealthGrpc.newBlockingStub(channel)
        .withDeadlineAfter(20, TimeUnit.SECONDS)
        .nodeWatchResources(NodeWatchResourcesRequest.getDefaultInstance());
  }

  private static DeviceHealth only(NodeWatchResourcesResponse told) {
    assertThat(told.getDevicesList()).hasSize(1);
    return told.getDevices(0);
  }

  @Test
  void healthIsToldAtOnceAndAtEachChange() {
    Iterator<NodeWatchResourcesResponse> told = watcher();
    DeviceHealth first = only(told.next());
    assertThat(first.getDevice().getPoolName()).isEqualTo("n");
    assertThat(first.getDevice().getDeviceName()).isEqualTo("gpu-1");
    assertThat(first.getHealth()).isEqualTo(HealthStatus.HEALTHY);
    assertThat(first.getLastUpdatedTime()).isEqualTo(NOW.getEpochSecond());

    is(GpuHealth.LOST, "it fell off the bus");
    watch.tell();
    DeviceHealth second = only(told.next());
    assertThat(second.getHealth()).isEqualTo(HealthStatus.UNHEALTHY);
    assertThat(second.getMessage()).isEqualTo("it fell off the bus");

    is(GpuHealth.HEALTHY, "");
    reads(GpuHealth.DEGRADED, "a row of the memory is retired at the next reset");
    watch.tell();
    DeviceHealth third = only(told.next());
    assertThat(third.getHealth()).isEqualTo(HealthStatus.UNHEALTHY);
    assertThat(third.getMessage()).contains("a row of the memory");
  }

  /** Claims on it are told, too: somebody else has switched it. */
  @Test
  void aGpuWhoseMigModeIsSwitchedOnIsUnhealthy() {
    Iterator<NodeWatchResourcesResponse> told = watcher();
    assertThat(only(told.next()).getHealth()).isEqualTo(HealthStatus.HEALTHY);
    when(reading.properties()).thenReturn(Map.of("mig_mode", "on"));
    watch.tell();
    DeviceHealth cut = only(told.next());
    assertThat(cut.getHealth()).isEqualTo(HealthStatus.UNHEALTHY);
    assertThat(cut.getMessage()).contains("MIG mode was switched on");
    when(reading.properties()).thenReturn(Map.of("mig_mode", "off"));
    watch.tell();
    assertThat(only(told.next()).getHealth()).isEqualTo(HealthStatus.HEALTHY);
  }

  /** A client that connects without end does not make the role hold a stream for each. */
  @Test
  void oldestStreamEndsWhenThereAreTooMany() {
    List<Iterator<NodeWatchResourcesResponse>> watchers = new ArrayList<>();
    for (int i = 0; i < 9; i++) {
      watchers.add(watcher());
      only(watchers.get(i).next());
    }
    assertThat(watchers.get(0).hasNext()).isFalse();
    watch.tell();
    only(watchers.get(8).next());
  }
}
