package dev.vgpu.k8s.scheduler.line;

import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.placement.Workload;
import dev.vgpu.k8s.names.PodRequest;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The cluster's last requests: such ones are likely to come. Confined to its {@link Roll}. */
final class RecentRequests {
  private static final Logger LOG = LoggerFactory.getLogger(RecentRequests.class);
  private static final int MOST = 1000;

  /** Fewer say little. */
  private static final int LEAST = 50;

  private static final List<Integer> USUAL_SHARES = List.of(10, 25, 50);
  private static final List<Integer> USUAL_WHOLES = List.of(1, 1, 2, 4, 8);

  /** By the pod's UID, the oldest first. */
  private final Map<String, Seen> seen = new LinkedHashMap<>();

  private record Seen(PodRequest request, HostDemand host) {
    Request onFleet(Set<String> models) {
      return request.onFleet("recent", host.cpuMillis(), host.memory(), Set.of(), models, "");
    }
  }

  /** Adds a pod's request, unless it is known already, or has no meaning. */
  void add(Entry entry) {
    try {
      entry.request().ifPresent(one -> add(entry.uid(), new Seen(one, HostDemand.of(entry.pod()))));
    } catch (IllegalArgumentException e) {
      LOG.debug("{} is not typical: {}", entry.fullName(), e.getMessage());
    }
  }

  private void add(String uid, Seen one) {
    Request ignored = one.onFleet(Set.of());
    seen.putIfAbsent(uid, one);
    if (seen.size() > MOST) {
      seen.remove(seen.keySet().iterator().next());
    }
  }

  /**
   * {@return the typical requests}
   *
   * @param models the models of the cluster's GPUs
   */
  Workload workload(Set<String> models) {
    return seen.size() < LEAST
        ? usual()
        : Workload.of(seen.values().stream().map(one -> one.onFleet(models)).toList());
  }

  private static Workload usual() {
    List<Request> usual = new ArrayList<>();
    USUAL_SHARES.forEach(share -> usual.add(Request.builder("share").share(share).build()));
    USUAL_WHOLES.forEach(gpus -> usual.add(Request.builder("whole").wholeGpus(gpus).build()));
    return Workload.of(usual);
  }
}
