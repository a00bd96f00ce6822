package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.names.PodRequests;
import dev.vgpu.k8s.scheduler.claim.ClaimUse;
import dev.vgpu.k8s.scheduler.line.Action;
import dev.vgpu.k8s.scheduler.line.Answer;
import dev.vgpu.k8s.scheduler.line.Place;
import dev.vgpu.k8s.scheduler.line.PodLine;
import dev.vgpu.request.PreemptionClass;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;

/**
 * Plays the API server and kube-scheduler for a line, one step at a time, in any order: pods are
 * filtered, bound, written to and ended, and the line is killed and started again.
 */
public final class SmallCluster {
  private List<Node> nodes;
  private Set<String> names;
  public final Map<String, Pod> pods = new LinkedHashMap<>();
  public final Map<String, CompletableFuture<String>> binding = new LinkedHashMap<>();
  public final List<Action> actions = new ArrayList<>();

  /** What claims have, by their UIDs. */
  private final Map<String, List<ClaimUse>> claims = new HashMap<>();

  private final String policy;
  public PodLine line;
  public double nowS;
  public int writes;
  public String lastReason = "";

  public SmallCluster(List<Node> nodes) {
    this(nodes, Policies.OURS);
  }

  public SmallCluster(List<Node> nodes, String policy) {
    this.nodes = nodes;
    this.policy = policy;
    line = new PodLine(policy);
    names = names(nodes);
    line.begin(nodes, List.of(), Map.of(), 0);
  }

  private static Set<String> names(List<Node> nodes) {
    return nodes.stream().map(one -> one.getMetadata().getName()).collect(Collectors.toSet());
  }

  /** The nodes change. */
  public void nodes(List<Node> changed) {
    nodes = changed;
    names = names(changed);
    line.nodes(nodes, nowS);
    collect();
  }

  /** A claim has this, and nothing else. */
  void claim(String uid, List<ClaimUse> has) {
    claims.put(uid, has);
    line.claim(uid, has, nowS);
    collect();
  }

  public void create(Pod pod) {
    pods.put(pod.getMetadata().getUid(), pod);
  }

  public boolean isBound(String uid) {
    return pods.containsKey(uid) && pods.get(uid).getSpec().getNodeName() != null;
  }

  /** What the node role is told of a pod's containers. */
  public String reservation(String uid) {
    return pods.get(uid).getMetadata().getAnnotations().get(Driver.RESERVATION);
  }

  /** The GPUs of a pod's place. */
  public List<String> gpus(String uid) {
    return Place.of(pods.get(uid)).orElseThrow().place().ids();
  }

  public List<String> waiting() {
    return pods.keySet().stream()
        .filter(uid -> !isBound(uid) && !binding.containsKey(uid))
        .toList();
  }

  /** kube-scheduler tries a pod: it is filtered and, if it gets a node, waits to be bound. */
  public boolean schedule(String uid) {
    return schedule(uid, names);
  }

  public boolean schedule(String uid, Set<String> listed) {
    Pod pod = pods.get(uid);
    int size = PodRequests.of(pod).flatMap(PodRequest::gang).map(gang -> gang.size()).orElse(1);
    Answer answer = line.filter(pod, new LinkedHashSet<>(listed), size, nowS);
    collect();
    lastReason = answer.text();
    if (answer.kind() != Answer.Kind.NODE) {
      pods.put(uid, Pods.waits(pods.get(uid), Answer.MARK + answer.text()));
      return false;
    }
    assertThat(listed).contains(answer.text());
    binding.put(uid, line.arrive(uid, answer.text()));
    nodeOf.put(uid, answer.text());
    return true;
  }

  private final Map<String, String> nodeOf = new HashMap<>();

  public void collect() {
    actions.addAll(line.drain());
  }

  /** A decided write reaches the API. */
  public void act(Action action) {
    actions.remove(action);
    if (action instanceof Action.Write write) {
      String uid = write.pod().getMetadata().getUid();
      if (pods.containsKey(uid)) {
        writes++;
        Pod written =
            new PodBuilder(pods.get(uid))
                .editMetadata()
                .addToAnnotations(write.annotations())
                .endMetadata()
                .build();
        pods.put(uid, written);
        line.written(uid, write.place());
      } else {
        line.gone(uid, nowS);
      }
    } else if (action instanceof Action.Evict evict) {
      evict.pods().forEach(pod -> delete(pod.getMetadata().getUid()));
    }
    collect();
  }

  public void delete(String uid) {
    pods.remove(uid);
    binding.remove(uid);
    line.gone(uid, nowS);
    collect();
  }

  /** Binds a pod if it may be bound, or reports why not. Returns false if the pod still waits. */
  public boolean bind(String uid) {
    CompletableFuture<String> go = binding.get(uid);
    if (!go.isDone()) {
      return false;
    }
    binding.remove(uid);
    Map<String, String> notes = line.annotations(uid, nowS);
    if (go.join().isEmpty() && pods.containsKey(uid) && !notes.isEmpty()) {
      writes++;
      pods.put(uid, Pods.bound(pods.get(uid), nodeOf.get(uid), notes));
      line.see(pods.get(uid), nowS);
      collect();
      check();
    }
    return true;
  }

  /** Kills the line, and starts another one from the API's state. */
  public void restart() {
    line = new PodLine(policy);
    actions.clear();
    binding.clear();
    line.begin(nodes, List.copyOf(pods.values()), claims, nowS);
    collect();
  }

  /** Does all that can happen without time passing, until nothing more does. */
  public void settle() {
    boolean isMoving = true;
    for (int i = 0; isMoving && i < 100; i++) {
      isMoving = !actions.isEmpty();
      List.copyOf(actions).forEach(this::act);
      for (String uid : waiting()) {
        isMoving |= schedule(uid);
      }
      for (String uid : List.copyOf(binding.keySet())) {
        isMoving |= binding.containsKey(uid) && bind(uid);
      }
    }
  }

  /** Filters all pods and carries out the decided writes, but binds no pod. */
  public void settleUntilWritten() {
    for (int i = 0; i < 3; i++) {
      waiting().forEach(this::schedule);
      List.copyOf(actions).forEach(this::act);
    }
  }

  /** No GPU is given twice. */
  public void check() {
    Map<String, Integer> shares = new HashMap<>();
    for (Pod pod : pods.values()) {
      if (pod.getSpec().getNodeName() == null) {
        continue;
      }
      PodRequest asked = PodRequests.of(pod).orElseThrow();
      Place place = Place.of(pod).orElseThrow().place();
      assertThat(place.node()).isEqualTo(pod.getSpec().getNodeName());
      assertThat(place.ids()).hasSize(asked.gpus());
      for (String id : place.ids()) {
        String tier =
            asked.isWhole()
                ? ""
                : asked.preemptionClass() == PreemptionClass.OFFLINE ? "offline " : "";
        shares.merge(
            tier + place.node() + id, asked.isWhole() ? 100 : asked.sharePercent(), Integer::sum);
      }
    }
    assertThat(shares.values()).allMatch(share -> share <= 100);
  }
}
