package dev.vgpu.k8s.node.slot;

import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.node.health.Condition;
import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.proto.deviceplugin.ListAndWatchResponse;
import dev.vgpu.request.GpuId;
import io.grpc.stub.ServerCallStreamObserver;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Tells the kubelet the devices of a resource, and their health. Safe for use by several threads.
 *
 * <p>A slot belongs to no GPU until a container has it. Then it is as healthy as the GPUs of that
 * container, and the kubelet says so in the pod's status. The other slots are unhealthy only if no
 * GPU is left: the kubelet then admits no pod that would have to wait for one.
 */
final class SlotList {
  /** The words of the device plugin API, v1beta1. */
  private static final String HEALTHY = "Healthy";

  private static final String UNHEALTHY = "Unhealthy";

  private final KubeletResource resource;
  private final int count;

  /** What each stream was told last. */
  private final Map<ServerCallStreamObserver<ListAndWatchResponse>, ListAndWatchResponse> watching =
      new LinkedHashMap<>();

  private ListAndWatchResponse list;

  SlotList(KubeletResource resource, int count) {
    this.resource = resource;
    this.count = count;
    this.list = list(true, Set.of());
  }

  /** Adds a stream. It stays open: the kubelet takes its end for the end of the plugin. */
  synchronized void watch(ServerCallStreamObserver<ListAndWatchResponse> watcher) {
    watcher.setOnCancelHandler(() -> leave(watcher));
    watcher.onNext(list);
    watching.put(watcher, list);
  }

  private synchronized void leave(ServerCallStreamObserver<ListAndWatchResponse> watcher) {
    watching.remove(watcher);
  }

  /**
   * Tells all streams what has changed.
   *
   * @param isServed whether any GPU can be used
   * @param held what is held
   * @param now the GPUs' conditions
   * @return whether all streams have been told
   */
  synchronized boolean tell(boolean isServed, Collection<Holding> held, Map<GpuId, Condition> now) {
    list =
        list(
            isServed,
            held.stream()
                .filter(one -> one.parts().stream().anyMatch(part -> isImpaired(part, now)))
                .map(Holding::key)
                .collect(Collectors.toSet()));
    watching.replaceAll(
        (watcher, told) -> {
          // One that does not read is told later, if it still differs.
          if (told.equals(list) || !watcher.isReady()) {
            return told;
          }
          watcher.onNext(list);
          return list;
        });
    return watching.values().stream().allMatch(list::equals);
  }

  private static boolean isImpaired(Holding.Part part, Map<GpuId, Condition> now) {
    return part.terms().gpus().stream()
        .anyMatch(gpu -> !now.getOrDefault(gpu, Condition.GOOD).isGood());
  }

  private ListAndWatchResponse list(boolean isServed, Set<String> impaired) {
    ListAndWatchResponse.Builder all = ListAndWatchResponse.newBuilder();
    IntStream.range(0, count)
        .mapToObj(number -> resource.prefix() + number)
        .forEach(
            id ->
                all.addDevicesBuilder()
                    .setID(id)
                    .setHealth(isServed && !impaired.contains(id) ? HEALTHY : UNHEALTHY));
    return all.build();
  }

  /** Ends all streams. */
  synchronized void end() {
    watching.keySet().forEach(ServerCallStreamObserver::onCompleted);
    watching.clear();
  }
}
