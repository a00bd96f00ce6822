package dev.vgpu.k8s.scheduler;

import dev.vgpu.k8s.http.ApiFailures;
import dev.vgpu.k8s.scheduler.claim.ClaimUse;
import dev.vgpu.k8s.scheduler.line.NodeGpus;
import dev.vgpu.k8s.scheduler.line.NodeRules;
import dev.vgpu.k8s.scheduler.line.PodLine;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import io.fabric8.kubernetes.client.informers.cache.Cache;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.DoubleSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Feeds the API's nodes, pods and claims to a line, from {@link #begin} on. If a watch expires, the
 * informer renews it and delivers the differences. Must be closed.
 *
 * <p>It reads nothing before it begins. A process that waited to lead may have been cut off from
 * the API, and what it knew may be old. Events that arrive while it begins wait until it has.
 */
final class ClusterWatch implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ClusterWatch.class);

  private final PodLine line;
  private final ExtenderService service;
  private final DoubleSupplier clockS;
  private final KubernetesClient client;
  private @Nullable SharedIndexInformer<Node> nodes;
  private @Nullable SharedIndexInformer<Pod> pods;
  private @Nullable SharedIndexInformer<ResourceClaim> claims;
  private boolean isOn;

  ClusterWatch(
      KubernetesClient client, PodLine line, ExtenderService service, DoubleSupplier clockS) {
    this.line = line;
    this.service = service;
    this.clockS = clockS;
    this.client = client;
  }

  /**
   * Forgets everything, reads the API's state, and follows it from now on.
   *
   * @throws io.fabric8.kubernetes.client.KubernetesClientException if the API cannot be read; then
   *     it follows nothing
   */
  synchronized void begin() {
    close();
    SharedIndexInformer<Node> allNodes = client.nodes().inform(new NodeEvents());
    nodes = allNodes;
    SharedIndexInformer<Pod> allPods = client.pods().inAnyNamespace().inform(new PodEvents());
    pods = allPods;
    claims = followClaims();
    line.begin(
        allNodes.getStore().list(), allPods.getStore().list(), claimed(), clockS.getAsDouble());
    isOn = true;
  }

  /** {@return the cluster's claims; null if it has none, or does not show them} */
  private @Nullable SharedIndexInformer<ResourceClaim> followClaims() {
    try {
      Cluster.requireShown(client.resources(ResourceClaim.class).inAnyNamespace());
      return client.resources(ResourceClaim.class).inAnyNamespace().inform(new ClaimEvents());
    } catch (KubernetesClientException e) {
      if (!ApiFailures.isMissing(e)) {
        throw e;
      }
      LOG.warn("what claims have of GPUs is not counted: {}", e.getMessage());
      return null;
    }
  }

  private Map<String, List<ClaimUse>> claimed() {
    return claims == null
        ? Map.of()
        : claims.getStore().list().stream()
            .collect(Collectors.toMap(one -> one.getMetadata().getUid(), ClaimUse::of));
  }

  /** {@return all pods of the cluster; none while it follows nothing} */
  synchronized List<Pod> pods() {
    return pods == null ? List.of() : pods.getStore().list();
  }

  /** {@return the names of all nodes of the cluster; none while it follows nothing} */
  synchronized Set<String> nodes() {
    return nodes == null
        ? Set.of()
        : nodes.getStore().list().stream()
            .map(node -> node.getMetadata().getName())
            .collect(Collectors.toSet());
  }

  /**
   * {@return a pod as it was last seen, or otherwise as the API server says now} Empty if there is
   * none, or one with another UID.
   *
   * @throws io.fabric8.kubernetes.client.KubernetesClientException if the API server does not
   *     answer
   */
  Optional<Pod> find(String namespace, String name, String uid) {
    return seen(namespace + "/" + name)
        .filter(pod -> pod.getMetadata().getUid().equals(uid))
        .or(
            () ->
                name.isEmpty()
                    ? Optional.empty()
                    : Optional.ofNullable(
                        client.pods().inNamespace(namespace).withName(name).get()))
        .filter(pod -> pod.getMetadata().getUid().equals(uid));
  }

  private synchronized Optional<Pod> seen(String key) {
    return pods == null ? Optional.empty() : Optional.ofNullable(pods.getStore().getByKey(key));
  }

  @Override
  public synchronized void close() {
    isOn = false;
    if (nodes != null) {
      nodes.close();
      nodes = null;
    }
    if (pods != null) {
      pods.close();
      pods = null;
    }
    if (claims != null) {
      claims.close();
      claims = null;
    }
  }

  private synchronized void nodesChanged() {
    if (isOn && nodes != null) {
      line.nodes(nodes.getStore().list(), clockS.getAsDouble());
      service.carryOut();
    }
  }

  /** A claim counts as it is now: an event may be older than what was read at the beginning. */
  private synchronized void changed(ResourceClaim claim) {
    if (isOn && claims != null) {
      String uid = claim.getMetadata().getUid();
      ResourceClaim now = claims.getStore().getByKey(Cache.metaNamespaceKeyFunc(claim));
      boolean isThere = now != null && now.getMetadata().getUid().equals(uid);
      line.claim(uid, isThere ? ClaimUse.of(now) : List.of(), clockS.getAsDouble());
      service.carryOut();
    }
  }

  private synchronized void see(Pod pod) {
    if (isOn) {
      line.see(pod, clockS.getAsDouble());
      service.carryOut();
    }
  }

  private synchronized void gone(Pod pod) {
    if (isOn) {
      line.gone(pod.getMetadata().getUid(), clockS.getAsDouble());
      service.carryOut();
    }
  }

  private final class NodeEvents implements ResourceEventHandler<Node> {
    @Override
    public void onAdd(Node node) {
      nodesChanged();
    }

    @Override
    public void onUpdate(Node old, Node node) {
      if (!NodeGpus.of(old).equals(NodeGpus.of(node))
          || !NodeRules.of(old).equals(NodeRules.of(node))) {
        nodesChanged();
      }
    }

    @Override
    public void onDelete(Node node, boolean isStateUnknown) {
      nodesChanged();
    }
  }

  private final class ClaimEvents implements ResourceEventHandler<ResourceClaim> {
    @Override
    public void onAdd(ResourceClaim claim) {
      changed(claim);
    }

    @Override
    public void onUpdate(ResourceClaim old, ResourceClaim claim) {
      changed(old); // it may have been deleted while the watch was down: another one has its name
      changed(claim);
    }

    @Override
    public void onDelete(ResourceClaim claim, boolean isStateUnknown) {
      changed(claim);
    }
  }

  /** What the informer tells. */
  final class PodEvents implements ResourceEventHandler<Pod> {
    @Override
    public void onAdd(Pod pod) {
      see(pod);
    }

    @Override
    public void onUpdate(Pod old, Pod pod) {
      if (!old.getMetadata().getUid().equals(pod.getMetadata().getUid())) {
        gone(old); // it was deleted while the watch was down, and another one has its name
      }
      see(pod);
    }

    @Override
    public void onDelete(Pod pod, boolean isStateUnknown) {
      gone(pod);
    }
  }
}
