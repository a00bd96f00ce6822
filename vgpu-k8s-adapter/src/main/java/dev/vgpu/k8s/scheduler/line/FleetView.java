package dev.vgpu.k8s.scheduler.line;

import dev.vgpu.fleet.gang.FleetQueue;
import dev.vgpu.fleet.gang.Reservation;
import dev.vgpu.fleet.gang.Terms;
import dev.vgpu.fleet.model.Fit;
import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.placement.PlacementPolicy;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.scheduler.claim.ClaimUse;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The fleet and its queue, and the cluster's names of its nodes and GPUs. Created anew when nodes
 * change. Confined to its {@link PodLine}.
 */
final class FleetView {
  private static final Logger LOG = LoggerFactory.getLogger(FleetView.class);

  /** Bounds the memory; pods that are made alike want the same. */
  private static final int MOST_TAKING = 64;

  /** No node has this name. */
  private static final Set<String> NO_NODE = Set.of("");

  private final List<NodeGpus> nodes;
  private final Set<String> models = new HashSet<>();
  private final Map<String, Integer> numbers = new HashMap<>();
  private final Fleet fleet;
  private final PlacementPolicy policy;
  private final FleetQueue queue;
  private final Map<Asked, Set<String>> serving = new HashMap<>();
  private final Map<Wanted, Set<String>> taking = new HashMap<>();
  private Map<String, NodeRules> rules = Map.of();

  /** What {@link #open} has found last: pods that are made alike are listed alike. */
  private Open lastOpen = new Open(Set.of(), Set.of(), Set.of());

  /** The part of a request that decides which nodes serve it. */
  private record Asked(
      Set<KubeletResource> resources, boolean isWhole, boolean isOfOneContainer, int gpus) {
    static Asked of(PodRequest request) {
      return new Asked(
          request.resources(), request.isWhole(), request.isOfOneContainer(), request.gpus());
    }
  }

  /** The part of a pod that decides which nodes serve it and take it. */
  private record Wanted(Asked asked, NodeRules.Wish wish) {}

  /** The nodes of a set that are not shut. */
  private record Open(Set<String> taking, Set<String> shut, Set<String> names) {
    static Open of(Set<String> taking, Set<String> shut) {
      return new Open(
          taking,
          shut,
          taking.stream()
              .filter(name -> !shut.contains(name))
              .collect(Collectors.toUnmodifiableSet()));
    }

    @SuppressWarnings("ReferenceEquality") // the same nodes in another set are only found anew
    boolean isOf(Set<String> otherTaking, Set<String> otherShut) {
      return taking == otherTaking && shut.equals(otherShut);
    }
  }

  FleetView(Collection<NodeGpus> all, String policyName, RecentRequests recent) {
    Map<String, NodeGpus> sorted = new TreeMap<>();
    all.forEach(node -> sorted.put(node.spec().name(), node));
    nodes = List.copyOf(sorted.values());
    List<NodeSpec> specs = nodes.stream().map(NodeGpus::spec).toList();
    for (int i = 0; i < specs.size(); i++) {
      numbers.put(specs.get(i).name(), i);
      models.add(specs.get(i).gpuModel());
    }
    fleet = new Fleet(specs);
    policy = Policies.of(policyName, fleet, recent.workload(models));
    queue = new FleetQueue(fleet, policy);
  }

  FleetQueue queue() {
    return queue;
  }

  /** {@return the models of its GPUs} */
  Set<String> models() {
    return models;
  }

  Fleet fleet() {
    return fleet;
  }

  /** {@return why a request fits none of its nodes even if they are empty; empty if it does} */
  Optional<String> lack(Request request) {
    try {
      Fit.require(fleet.nodes(), request);
      return Optional.empty();
    } catch (IllegalArgumentException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  /** {@return the place of a request, with the cluster's names} */
  Optional<Place> place(String uid) {
    return fleet
        .placement(uid)
        .map(
            one -> {
              NodeGpus node = nodes.get(one.node());
              return new Place(
                  node.spec().name(), one.gpus().stream().map(node.ids()::get).toList());
            });
  }

  /** {@return whether all requests could be counted at these places; if not, nothing changes} */
  boolean adopt(Terms terms, List<Request> requests, List<Place> places, double nowS) {
    List<Placement> placements = new ArrayList<>();
    for (int i = 0; i < requests.size(); i++) {
      Integer node = numbers.get(places.get(i).node());
      if (node == null) {
        return false;
      }
      List<String> ids = nodes.get(node).ids();
      List<Integer> gpus = places.get(i).ids().stream().map(ids::indexOf).sorted().toList();
      placements.add(new Placement(requests.get(i), node, gpus, 0));
    }
    try {
      queue.adopt(terms, placements, nowS);
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  /**
   * {@return whether what a claim has could be counted} What it has of other devices than the
   * nodes' GPUs does not count, and neither does more than there is.
   *
   * @param isForced whether its memory counts if its share fits no more
   */
  boolean count(ClaimUse claim, boolean isForced, double nowS) {
    Integer node = numbers.get(claim.node());
    int gpu =
        node == null
            ? -1
            : nodes.get(node).ids().stream().map(Driver::device).toList().indexOf(claim.device());
    if (node == null || gpu < 0) {
      return true;
    }
    Terms terms = Terms.of(claim.name(), 1, PreemptionClass.NEARLINE, Double.POSITIVE_INFINITY);
    List<Request> ways =
        isForced && !claim.memory().equals(MemorySize.ZERO)
            ? List.of(claim.request(), claim.withoutShare())
            : List.of(claim.request());
    for (Request way : ways) {
      try {
        queue.adopt(terms, List.of(new Placement(way, node, List.of(gpu), 0)), nowS);
        return true;
      } catch (IllegalArgumentException e) {
        LOG.debug("a claim is not counted so: {}", way, e);
      }
    }
    return false;
  }

  /**
   * {@return whether a request that runs on a node could be counted there, on GPUs of the policy's
   * choice}
   */
  boolean adoptSomewhere(Terms terms, Request request, String nodeName, double nowS) {
    Integer node = numbers.get(nodeName);
    if (node == null) {
      return false;
    }
    return policy
        .choose(fleet, request, one -> one == node)
        .map(
            spot -> {
              Placement placement = fleet.place(request, spot);
              fleet.undo(placement);
              queue.adopt(terms, List.of(placement), nowS);
              return true;
            })
        .orElse(false);
  }

  /**
   * Takes over the reservation of the view before this one, unless its nodes have changed so much
   * that it is of no use. Otherwise each change of a node would begin a new wait.
   */
  void takeOver(FleetView before) {
    before
        .queue
        .reservation()
        .ifPresent(
            held -> {
              List<String> names =
                  held.nodes().stream().map(node -> before.nodes.get(node).spec().name()).toList();
              if (numbers.keySet().containsAll(names)) {
                Set<Integer> here = names.stream().map(numbers::get).collect(Collectors.toSet());
                queue.takeOver(new Reservation(held.gang(), held.startS(), here));
              }
            });
  }

  /** {@return a place without the GPUs that its node has lost} */
  Place withoutLost(Place place) {
    Integer node = numbers.get(place.node());
    List<String> lost = node == null ? List.of() : nodes.get(node).lost(place.ids());
    return new Place(place.node(), place.ids().stream().filter(id -> !lost.contains(id)).toList());
  }

  /** {@return the free processors and host memory of a node; empty if there is no such node} */
  Optional<NodeState> state(String nodeName) {
    return Optional.ofNullable(numbers.get(nodeName)).map(fleet::state);
  }

  /** {@return the nodes whose device plugins serve a pod: elsewhere, nothing would be enforced} */
  Set<String> serving(PodRequest request) {
    return serving.computeIfAbsent(
        Asked.of(request),
        key ->
            nodes.stream()
                .filter(node -> node.serves(request))
                .map(node -> node.spec().name())
                .collect(Collectors.toUnmodifiableSet()));
  }

  /** Sets which pods the nodes take. */
  void rules(Map<String, NodeRules> all) {
    rules = all;
    taking.clear();
  }

  /** {@return whether a node takes a pod, as far as labels, taints and cordons say} */
  boolean takes(String node, Pod pod) {
    return takes(node, NodeRules.Wish.of(pod));
  }

  private boolean takes(String node, NodeRules.Wish wish) {
    NodeRules known = rules.get(node);
    return known == null || known.takes(wish);
  }

  /** {@return the nodes that serve a pod and take it} */
  Set<String> taking(Pod pod, PodRequest request) {
    if (taking.size() >= MOST_TAKING) {
      taking.clear();
    }
    return taking.computeIfAbsent(
        new Wanted(Asked.of(request), NodeRules.Wish.of(pod)),
        key ->
            serving(request).stream()
                .filter(name -> takes(name, key.wish))
                .collect(Collectors.toUnmodifiableSet()));
  }

  /**
   * {@return the nodes that serve a pod and take it, without those that are shut; empty for any}
   */
  Set<String> open(Pod pod, PodRequest request, Set<String> shut) {
    Set<String> taking = taking(pod, request);
    if (shut.isEmpty()) {
      return narrow(taking);
    }
    if (!lastOpen.isOf(taking, shut)) {
      lastOpen = Open.of(taking, shut);
    }
    return narrow(lastOpen.names);
  }

  private Set<String> narrow(Set<String> names) {
    return names.isEmpty() ? NO_NODE : names.size() == nodes.size() ? Set.of() : names;
  }

  /**
   * {@return of a request's nodes, those that the cluster's scheduler does not list although it
   * fits there now, and the barred ones} The scheduler may have left out others only because they
   * are too full now.
   */
  Set<String> unlisted(Request request, Set<String> listed, Set<String> barred) {
    Set<String> names = new HashSet<>();
    for (int node = 0; node < nodes.size(); node++) {
      String name = nodes.get(node).spec().name();
      if (!listed.contains(name)
          && (request.nodes().isEmpty() || request.allows(name))
          && (barred.contains(name) || fleet.state(node).fits(request.shape()))) {
        names.add(name);
      }
    }
    return names;
  }

  /** {@return whether the nodes are the same as these} */
  boolean isOf(Map<String, NodeGpus> others) {
    return others.size() == nodes.size()
        && nodes.stream().allMatch(node -> node.equals(others.get(node.spec().name())));
  }
}
