package dev.vgpu.k8s.node;

import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.node.metrics.ContainerMetrics.Target;
import dev.vgpu.k8s.node.slot.SlotOwners;
import dev.vgpu.k8s.proto.podresources.ContainerResources;
import dev.vgpu.k8s.proto.podresources.DynamicResource;
import dev.vgpu.k8s.proto.podresources.PodResources;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.grpc.StatusRuntimeException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds the containers of holdings. The kubelet refuses to be asked often, so it is asked once for
 * all; while it does not answer, what it said last counts. Safe for use by several threads.
 */
final class ContainersOf implements Function<List<Holding>, Map<String, List<Target>>> {
  private static final Logger log = LoggerFactory.getLogger(ContainersOf.class);
  private static final int MOST_KNOWN = 10_000;

  private final KubernetesClient api;
  private final SlotOwners kubelet;

  /**
   * Keyed by holding and pod. A claim's pod does not change, and a new pod of the same name has
   * another claim.
   */
  private final Map<String, String> uids = new ConcurrentHashMap<>();

  /** What was found last, by the holdings' keys; not changed any more. */
  private volatile Map<String, List<Target>> last = Map.of();

  ContainersOf(KubernetesClient api, SlotOwners kubelet) {
    this.api = api;
    this.kubelet = kubelet;
  }

  /** {@return the containers of holdings, by their keys} The kubelet is asked at most once. */
  @Override
  public Map<String, List<Target>> apply(List<Holding> holdings) {
    Map<String, List<Target>> before = last;
    Map<String, List<Target>> found = new HashMap<>();
    List<Holding> claims = new ArrayList<>();
    for (Holding holding : holdings) {
      Holding.Owner owner = holding.owner();
      if (owner.podUid().isPresent()) {
        String container = owner.container().orElse("");
        String uid = owner.podUid().get();
        found.put(
            holding.key(), List.of(new Target(owner.namespace(), owner.name(), container, uid)));
      } else {
        claims.add(holding);
      }
    }
    try {
      List<PodResources> pods = claims.isEmpty() ? List.of() : kubelet.pods();
      claims.forEach(holding -> found.put(holding.key(), ofClaim(holding, pods)));
    } catch (StatusRuntimeException e) {
      log.debug("the kubelet does not say whose claims are", e);
      claims.forEach(
          holding ->
              found.put(holding.key(), before.getOrDefault(holding.key(), unknown(holding))));
    }
    last = found;
    return found;
  }

  private static List<Target> unknown(Holding holding) {
    return List.of(new Target(holding.owner().namespace(), "", "", ""));
  }

  private List<Target> ofClaim(Holding holding, List<PodResources> pods) {
    List<Target> targets = new ArrayList<>();
    for (PodResources pod : pods) {
      for (ContainerResources container : pod.getContainersList()) {
        if (container.getDynamicResourcesList().stream().anyMatch(each -> is(each, holding))) {
          targets.add(
              new Target(
                  pod.getNamespace(),
                  pod.getName(),
                  container.getName(),
                  uid(holding, pod.getNamespace(), pod.getName())));
        }
      }
    }
    return targets.isEmpty() ? unknown(holding) : targets;
  }

  private static boolean is(DynamicResource resource, Holding holding) {
    return resource.getClaimName().equals(holding.owner().name())
        && resource.getClaimNamespace().equals(holding.owner().namespace())
        && resource.getClaimResourcesList().stream()
            .anyMatch(each -> each.getDriverName().equals(Driver.NAME));
  }

  private String uid(Holding holding, String namespace, String name) {
    String key = holding.key() + "/" + namespace + "/" + name;
    String known = uids.get(key);
    if (known != null) {
      return known;
    }
    if (uids.size() >= MOST_KNOWN) {
      uids.clear();
    }
    try {
      Pod pod = api.pods().inNamespace(namespace).withName(name).get();
      String uid = pod == null ? "" : pod.getMetadata().getUid();
      if (!uid.isEmpty()) {
        uids.put(key, uid);
      }
      return uid;
    } catch (KubernetesClientException e) {
      log.debug("a pod's UID cannot be asked", e);
      return "";
    }
  }
}
