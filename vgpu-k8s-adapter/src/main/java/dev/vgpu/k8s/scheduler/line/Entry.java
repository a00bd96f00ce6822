package dev.vgpu.k8s.scheduler.line;

import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.scheduler.claim.ClaimConditions;
import io.fabric8.kubernetes.api.model.Pod;
import java.time.Instant;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A known pod. Modified by its {@link PodLine} only. */
final class Entry {
  private final Optional<PodRequest> request;
  private Pod pod;

  /**
   * The request whose node it must share: the UID of the pod that it names, or that pod's name
   * while no such pod is known. Empty for none.
   */
  String sameNodeAs;

  /** The name of its crew. */
  String crew = "";

  /** Its place, decided here or read from its annotation. */
  @Nullable Place place;

  boolean isBound;

  /** Nodes of places that it had to give back, until the cluster's scheduler lists them. */
  final Set<String> barred = new HashSet<>();

  /** Nodes from which something keeps it away that is known to the cluster's scheduler only. */
  private Set<String> shut = Set.of();

  /** When its expected running time began; not a number before it was counted. */
  double sinceS = Double.NaN;

  Entry(Pod pod, Optional<PodRequest> request) {
    this.pod = pod;
    this.request = request;
    sameNodeAs = sharesWith();
  }

  Pod pod() {
    return pod;
  }

  void see(Pod newer) {
    pod = newer;
  }

  /** {@return when its expected running time began: now, if it is asked for the first time} */
  double since(double nowS) {
    sinceS = Double.isNaN(sinceS) ? nowS : sinceS;
    return sinceS;
  }

  /** {@return whether the pod has been told to end} It has its GPUs until it is gone. */
  boolean isEnding() {
    return pod.getMetadata().getDeletionTimestamp() != null;
  }

  /** {@return when the pod was started by its node, or else created} */
  Instant born() {
    return Optional.ofNullable(pod.getStatus())
        .flatMap(status -> ClaimConditions.instant(status.getStartTime()))
        .or(() -> ClaimConditions.instant(pod.getMetadata().getCreationTimestamp()))
        .orElse(Instant.MIN);
  }

  String uid() {
    return pod.getMetadata().getUid();
  }

  String fullName() {
    return pod.getMetadata().getNamespace() + "/" + pod.getMetadata().getName();
  }

  Optional<PodRequest> request() {
    return request;
  }

  /** {@return the full name of the pod whose node it must share; empty for none} */
  String sharesWith() {
    return request.map(PodRequest::sameNodeAs).orElse("");
  }

  Request onFleet(FleetView view, Set<String> allowed) {
    return onFleet(request, view, allowed, HostDemand.of(pod));
  }

  /** The cluster's scheduler has asked about it, and listed the nodes that it may take. */
  void listed(FleetView view, Set<String> listed) {
    barred.removeAll(listed);
    shut = view.unlisted(onOpen(view), listed, barred);
  }

  /** {@return the request on the nodes that serve it and take it} */
  Request onServing(FleetView view) {
    return onFleet(view, request.map(one -> view.open(pod, one, shut)).orElse(Set.of()));
  }

  /** {@return the same, with the nodes from which something unknown keeps it away} */
  Request onOpen(FleetView view) {
    return onFleet(view, request.map(one -> view.open(pod, one, Set.of())).orElse(Set.of()));
  }

  /**
   * {@return the request of a pod that runs on a node} It counts there whatever its processors and
   * host memory are, with the part of them that is free.
   *
   * @param lost how many of its GPUs the node has lost
   */
  Request onNode(FleetView view, NodeState free, int lost) {
    Optional<PodRequest> left =
        request.filter(one -> one.gpus() > lost).map(one -> one.on(one.gpus() - lost));
    return onFleet(left, view, Set.of(), HostDemand.of(pod).atMost(free));
  }

  private Request onFleet(
      Optional<PodRequest> asked, FleetView view, Set<String> allowed, HostDemand host) {
    return asked
        .map(
            one ->
                one.onFleet(
                    uid(), host.cpuMillis(), host.memory(), allowed, view.models(), sameNodeAs))
        .orElseGet(
            () ->
                Request.builder(uid())
                    .host(host.cpuMillis(), host.memory())
                    .nodes(allowed)
                    .build());
  }
}
