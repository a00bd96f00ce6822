package dev.vgpu.k8s.node.dra;

import dev.vgpu.k8s.node.health.Condition;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.proto.drahealth.DRAResourceHealthGrpc;
import dev.vgpu.k8s.proto.drahealth.DeviceIdentifier;
import dev.vgpu.k8s.proto.drahealth.HealthStatus;
import dev.vgpu.k8s.proto.drahealth.NodeWatchResourcesRequest;
import dev.vgpu.k8s.proto.drahealth.NodeWatchResourcesResponse;
import dev.vgpu.request.GpuId;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.time.ZonedDateTime;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Tells the kubelet the health of the node's GPUs. The kubelet adds it to the status of each pod
 * with a claim. Safe for use by several threads.
 */
final class HealthWatch extends DRAResourceHealthGrpc.DRAResourceHealthImplBase {
  /** The kubelet has one stream, and for a moment two when it connects again. */
  private static final int MOST_WATCHERS = 8;

  private final NodeDevices devices;
  private final GpuConditions conditions;
  private final String node;
  private final Supplier<ZonedDateTime> wall;

  /** The oldest first. */
  private final Deque<ServerCallStreamObserver<NodeWatchResourcesResponse>> watchers =
      new ArrayDeque<>();

  /** What was told last. */
  private @Nullable NodeWatchResourcesResponse last;

  HealthWatch(
      NodeDevices devices, GpuConditions conditions, String node, Supplier<ZonedDateTime> wall) {
    this.devices = devices;
    this.conditions = conditions;
    this.node = node;
    this.wall = wall;
  }

  @Override
  public synchronized void nodeWatchResources(
      NodeWatchResourcesRequest request, StreamObserver<NodeWatchResourcesResponse> answers) {
    ServerCallStreamObserver<NodeWatchResourcesResponse> watcher =
        (ServerCallStreamObserver<NodeWatchResourcesResponse>) answers;
    watcher.setOnCancelHandler(() -> leave(watcher));
    if (watchers.size() == MOST_WATCHERS) {
      watchers.remove().onCompleted();
    }
    watchers.add(watcher);
    if (last != null) {
      watcher.onNext(last);
    }
  }

  private synchronized void leave(ServerCallStreamObserver<NodeWatchResourcesResponse> watcher) {
    watchers.remove(watcher);
  }

  /**
   * Tells all watchers. To be called at every change, and at least every 30 s, after which the
   * kubelet takes the health to be unknown. Blocks until the driver answers; others do not wait for
   * that.
   */
  void tell() {
    conditions.read();
    tell(health());
  }

  private synchronized void tell(NodeWatchResourcesResponse health) {
    last = health;
    for (ServerCallStreamObserver<NodeWatchResourcesResponse> watcher : watchers) {
      // A watcher that does not read would make this process hold all that it is sent.
      if (watcher.isReady()) {
        watcher.onNext(health);
      }
    }
  }

  private NodeWatchResourcesResponse health() {
    long time = wall.get().toEpochSecond();
    Map<GpuId, Condition> now = conditions.now();
    NodeWatchResourcesResponse.Builder all = NodeWatchResourcesResponse.newBuilder();
    devices
        .all()
        .forEach(
            (name, source) -> {
              Condition condition = now.getOrDefault(source.gpu(), Condition.GOOD);
              all.addDevicesBuilder()
                  .setDevice(DeviceIdentifier.newBuilder().setPoolName(node).setDeviceName(name))
                  .setHealth(condition.isGood() ? HealthStatus.HEALTHY : HealthStatus.UNHEALTHY)
                  .setLastUpdatedTime(time)
                  .setMessage(condition.reason());
            });
    return all.build();
  }
}
