package dev.vgpu.k8s.scheduler;

import dev.vgpu.k8s.http.ApiFailures;
import dev.vgpu.k8s.scheduler.claim.ClaimConditions;
import dev.vgpu.k8s.scheduler.claim.ClaimNeed;
import dev.vgpu.k8s.scheduler.claim.GangClaims;
import dev.vgpu.k8s.scheduler.claim.KnownPods;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.DoubleSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Follows the cluster's claims from {@link #begin} on, and writes what {@link GangClaims} decides.
 * Must be closed.
 */
public final class ClaimWatch implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ClaimWatch.class);

  private final KubernetesClient client;
  private final Cluster cluster;

  private final GangClaims gangs;
  private final DoubleSupplier clockS;
  private final Supplier<ZonedDateTime> wall;
  private volatile @Nullable SharedIndexInformer<ResourceClaim> claims;
  private @Nullable SharedIndexInformer<ResourceSlice> slices;

  /**
   * Creates it; it follows nothing yet.
   *
   * @param client follows the claims
   * @param cluster writes to them
   * @param hold how long the claims of an incomplete gang are held
   * @param clockS seconds of a monotonic clock
   * @param wall the time of day
   */
  public ClaimWatch(
      KubernetesClient client,
      Cluster cluster,
      Duration hold,
      DoubleSupplier clockS,
      Supplier<ZonedDateTime> wall) {
    this.client = client;
    this.cluster = cluster;
    this.clockS = clockS;
    this.wall = wall;
    gangs =
        new GangClaims(
            hold,
            (pod, gang) ->
                gang.size() > 0
                    ? gang.size()
                    : cluster.size(pod.getMetadata().getNamespace(), gang).orElse(0));
  }

  /**
   * Reads the claims and the slices, and follows them from now on. If the API server has none, or
   * does not show them, it decides nothing: pods with slots are served without it.
   *
   * @throws KubernetesClientException if they cannot be read now
   */
  public synchronized void begin() {
    close();
    try {
      Cluster.requireShown(client.resources(ResourceSlice.class));
      Cluster.requireShown(client.resources(ResourceClaim.class).inAnyNamespace());
    } catch (KubernetesClientException e) {
      if (!ApiFailures.isMissing(e)) {
        throw e;
      }
      LOG.warn(
          "gangs with claims are not decided, and no pod with a claim of their nodes is bound,"
              + " until this process may read claims and slices when it starts: {}",
          e.getMessage());
      return;
    }
    claims = client.resources(ResourceClaim.class).inAnyNamespace().inform(new Ignored<>());
    slices = client.resources(ResourceSlice.class).inform(new Ignored<>());
  }

  /**
   * Decides, and writes. Blocks until the API server answers.
   *
   * @param pods all pods of the cluster
   * @param nodes the names of its nodes; the slices of others are no room
   */
  public synchronized void tick(Collection<Pod> pods, Set<String> nodes) {
    if (claims == null || slices == null) {
      return;
    }
    Instant now = wall.get().toInstant();
    List<ResourceClaim> all = claims.getStore().list();
    try {
      List<GangClaims.Verdict> verdicts =
          gangs.decide(all, pods, slicesOf(nodes), now, clockS.getAsDouble());
      write(verdicts, now);
    } catch (KubernetesClientException e) {
      LOG.warn("gangs with claims wait, because the API server fails: {}", e.getMessage());
    }
  }

  /** {@return the slices of nodes} A slice is deleted some time after its node. */
  private List<ResourceSlice> slicesOf(Set<String> nodes) {
    return slices == null
        ? List.of()
        : slices.getStore().list().stream()
            .filter(one -> one.getSpec() != null && nodes.contains(one.getSpec().getNodeName()))
            .toList();
  }

  /**
   * {@return why a pod may not get devices of nodes now, by node; without those that it may use}
   * Pods that have their devices, or need none of vgpu's, may use all nodes.
   */
  Map<String, String> refusals(Pod pod, Collection<String> nodes) {
    SharedIndexInformer<ResourceClaim> all = claims;
    if (all == null) {
      return Map.of();
    }
    List<ResourceClaim> asked =
        KnownPods.claimNames(pod).stream()
            .map(name -> all.getStore().getByKey(name))
            .filter(Objects::nonNull)
            .filter(claim -> ClaimConditions.devices(claim).isEmpty() && ClaimNeed.isIn(claim))
            .toList();
    return asked.isEmpty() ? Map.of() : gangs.refusals(pod, asked, nodes, wall.get().toInstant());
  }

  /** A claim whose status is refused, for example by a webhook, must not keep others waiting. */
  private void write(List<GangClaims.Verdict> verdicts, Instant now) {
    int refused = 0;
    String example = "";
    for (GangClaims.Verdict verdict : verdicts) {
      try {
        write(verdict, now);
      } catch (KubernetesClientException e) {
        if (!ApiFailures.isOnlyOfItsObject(e)) {
          throw e;
        }
        refused++;
        example = verdict.claim().getMetadata().getName() + ": " + e.getMessage();
      }
    }
    if (refused > 0) {
      LOG.warn("conditions of claims are refused: {}, for example of {}", refused, example);
    }
  }

  private void write(GangClaims.Verdict verdict, Instant now) {
    String name = verdict.claim().getMetadata().getName();
    try {
      cluster.status(ClaimConditions.with(verdict, now));
      if (!verdict.isComplete()) {
        LOG.info("the devices of claim {} are given back: {}", name, verdict.message());
      }
    } catch (KubernetesClientException e) {
      if (!ApiFailures.isConflict(e) && !ApiFailures.isGone(e)) {
        throw e;
      }
      LOG.debug("claim {} has changed, and is looked at again", name);
    }
  }

  @Override
  public synchronized void close() {
    if (claims != null) {
      claims.close();
      claims = null;
    }
    if (slices != null) {
      slices.close();
      slices = null;
    }
  }

  /** What changes is looked at periodically: kube-scheduler looks every 5 s. */
  private static final class Ignored<T> implements ResourceEventHandler<T> {
    @Override
    public void onAdd(T one) {}

    @Override
    public void onUpdate(T old, T one) {}

    @Override
    public void onDelete(T one, boolean isStateUnknown) {}
  }
}
