package dev.vgpu.k8s.scheduler.claim;

import dev.vgpu.k8s.scheduler.Pods;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.PodStatus;
import io.fabric8.kubernetes.api.model.PodStatusBuilder;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * A cluster of pods with one claim each, in virtual time. It stands in for kube-scheduler, which
 * takes the first GPU with room for a claim, and tries a pod whose devices are given back after all
 * others.
 */
final class ClaimCluster {
  /** How often kube-scheduler tries the pods. */
  static final int STEP_S = 5;

  static final int HOLD = 30;
  private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");

  /** Pods that kube-scheduler finds no node for. */
  final Set<String> unschedulable = new HashSet<>();

  /** Whether the claims of new pods are made from templates. */
  boolean hasTemplates;

  /** Whether kube-scheduler asks which nodes keep their devices, and tries the youngest first. */
  boolean asks;

  /** How long Kubernetes takes to give the devices of an ended pod back. */
  int freeingS;

  /** Whether ended pods are there until then. */
  boolean keepsEnded;

  /** Why devices were given back last. */
  String lastFailure = "";

  private final GangClaims gangs =
      new GangClaims(Duration.ofSeconds(HOLD), (pod, gang) -> gang.size());
  private final List<ResourceSlice> slices = new ArrayList<>();
  private final Map<String, Pod> pods = new LinkedHashMap<>();
  private final Map<String, ResourceClaim> claims = new LinkedHashMap<>();
  private final Map<String, Integer> shares = new HashMap<>();
  private final Map<String, Integer> deadlines = new HashMap<>();
  private final Map<String, Integer> gpuOf = new HashMap<>();
  private final Set<String> lost = new HashSet<>();

  /** When pods have ended whose devices are not given back yet. */
  private final Map<String, Integer> endS = new LinkedHashMap<>();

  private final List<String> queue = new ArrayList<>();
  private final List<String> bound = new ArrayList<>();
  private final int gpus;
  private final int gpusOfEach;
  private int nowS;

  ClaimCluster(int gpus) {
    this(1, gpus);
  }

  /** Creates nodes with equally many GPUs. */
  ClaimCluster(int nodes, int gpusOfEach) {
    this.gpus = nodes * gpusOfEach;
    this.gpusOfEach = gpusOfEach;
    for (int node = 0; node < nodes; node++) {
      StringBuilder devices = new StringBuilder();
      for (int i = node * gpusOfEach; i < (node + 1) * gpusOfEach; i++) {
        devices
            .append(devices.isEmpty() ? "" : ",")
            .append("{'name':'gpu-")
            .append(i)
            .append("','capacity':{'share':{'value':'100'},'memory':{'value':'8Gi'}}}");
      }
      String slice =
          "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':'NODE'},"
              + "'spec':{'driver':'vgpu.dev','nodeName':'NODE','pool':{'name':'NODE'},'devices':["
              + devices
              + "]}}";
      slices.add(
          Serialization.unmarshal(
              slice.replace('\'', '"').replace("NODE", "n" + node), ResourceSlice.class));
    }
  }

  private String node(int gpu) {
    return "n" + gpu / gpusOfEach;
  }

  /** A pod that may run for a time; 0 for ever. The API tells its age in whole seconds. */
  void create(String name, Map<String, String> gang, int share, int runS) {
    pods.put(
        name,
        new PodBuilder(Pods.pod(name, gang, Map.of("cpu", "1")))
            .editMetadata()
            .withCreationTimestamp(now().toString())
            .endMetadata()
            .editSpec()
            .withActiveDeadlineSeconds(runS == 0 ? null : (long) runS)
            .addNewResourceClaim()
            .withName("gpu")
            .withResourceClaimName(hasTemplates ? null : name)
            .withResourceClaimTemplateName(hasTemplates ? "template" : null)
            .endResourceClaim()
            .endSpec()
            .withStatus(hasTemplates ? claimOf(name) : null)
            .build());
    queue.add(name);
    shares.put(name, share);
    deadlines.put(name, runS);
    claims.put(name, claim(name, "{}"));
  }

  /** What the API says of a pod's claim that was made from a template. */
  private static PodStatus claimOf(String name) {
    return new PodStatusBuilder()
        .addNewResourceClaimStatus()
        .withName("gpu")
        .withResourceClaimName(name)
        .endResourceClaimStatus()
        .build();
  }

  private ResourceClaim claim(String name, String status) {
    return Serialization.unmarshal(
        String.format(
            Locale.ROOT,
            """
            {"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
             "metadata":{"name":"%s","namespace":"default"},
             "spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"vgpu.dev",
              "capacity":{"requests":{"share":"%d","memory":"1Mi"}}}}]}},
             "status":%s}""",
            name,
            shares.get(name),
            status),
        ResourceClaim.class);
  }

  /** The pods that were bound, in that order; also those that have ended. */
  List<String> bound() {
    return bound;
  }

  /** The slice of a node goes; pods that run there, and their claims, stay. */
  void lose(String node) {
    slices.removeIf(slice -> slice.getMetadata().getName().equals(node));
    lost.add(node);
  }

  /** Time passes. */
  void until(int timeS) {
    while (nowS < timeS) {
      nowS += STEP_S;
      end();
      List<String> order = new ArrayList<>(queue);
      if (asks) {
        Collections.reverse(order);
      }
      order.stream()
          .filter(name -> !bound.contains(name) && !gpuOf.containsKey(name))
          .filter(name -> !unschedulable.contains(name))
          .toList()
          .forEach(this::allocate);
      decide();
    }
  }

  private Instant now() {
    return START.plusSeconds(nowS);
  }

  private void end() {
    for (String name : List.copyOf(pods.keySet())) {
      Pod pod = pods.get(name);
      boolean isOver =
          pod.getStatus() != null
              && pod.getStatus().getStartTime() != null
              && deadlines.get(name) > 0
              && !now()
                  .isBefore(
                      Instant.parse(pod.getStatus().getStartTime())
                          .plusSeconds(deadlines.get(name)));
      if (isOver && !endS.containsKey(name)) {
        endS.put(name, nowS);
        pods.remove(name);
        if (keepsEnded) {
          pods.put(name, new PodBuilder(pod).editStatus().withPhase("Failed").endStatus().build());
        }
      }
    }
    for (String name : List.copyOf(endS.keySet())) {
      if (nowS - endS.get(name) >= freeingS) {
        endS.remove(name);
        pods.remove(name);
        claims.remove(name);
        gpuOf.remove(name);
      }
    }
  }

  private void allocate(String name) {
    for (int gpu = 0; gpu < gpus; gpu++) {
      int number = gpu;
      int taken =
          gpuOf.entrySet().stream()
              .filter(one -> one.getValue() == number)
              .mapToInt(one -> shares.get(one.getKey()))
              .sum();
      boolean isRoom = taken + shares.get(name) <= 100 && !lost.contains(node(gpu));
      if (isRoom && mayUse(name, node(gpu))) {
        gpuOf.put(name, gpu);
        claims.put(
            name,
            claim(
                name,
                String.format(
                    Locale.ROOT,
                    """
                    {"reservedFor":[{"resource":"pods","name":"%s","uid":"uid-%s"}],
                     "allocation":{"allocationTimestamp":"%s","devices":{"results":[
                      {"request":"gpu","driver":"vgpu.dev","pool":"%s","device":"gpu-%d",
                       "bindingConditions":["vgpu.dev/gang-complete"],
                       "consumedCapacity":{"share":"%d","memory":"1Mi"}}]}}}""",
                    name,
                    name,
                    now(),
                    node(gpu),
                    gpu,
                    shares.get(name))));
        return;
      }
    }
  }

  private boolean mayUse(String name, String node) {
    List<ResourceClaim> its = List.of(claims.get(name));
    return !asks || gangs.refusals(pods.get(name), its, List.of(node), now()).isEmpty();
  }

  private void decide() {
    List<GangClaims.Verdict> verdicts =
        gangs.decide(claims.values(), pods.values(), slices, now(), nowS);
    for (GangClaims.Verdict verdict : verdicts) {
      String name = verdict.claim().getMetadata().getName();
      if (verdict.isComplete()) {
        claims.put(name, ClaimConditions.with(verdict, now()));
        bound.add(name);
        pods.put(
            name,
            new PodBuilder(Pods.bound(pods.get(name), node(gpuOf.get(name)), Map.of()))
                .editOrNewStatus()
                .withStartTime(now().toString())
                .endStatus()
                .build());
      } else {
        lastFailure = verdict.message();
        gpuOf.remove(name);
        claims.put(name, claim(name, "{}"));
        queue.remove(name);
        queue.add(name);
      }
    }
  }
}
