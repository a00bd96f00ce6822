package dev.vgpu.k8s.scheduler.line;

import static java.util.Objects.requireNonNull;

import dev.vgpu.fleet.gang.Terms;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.names.PodRefusedException;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.names.PodRequests;
import dev.vgpu.k8s.scheduler.claim.ClaimUse;
import dev.vgpu.k8s.scheduler.claim.KnownPods;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The known pods and nodes, and the fleet built from them. Confined to its {@link PodLine}. */
final class Roll {
  private static final Logger LOG = LoggerFactory.getLogger(Roll.class);

  /** The size in the name of a crew; no namespace's name has that sign. */
  private static final Pattern SIZE = Pattern.compile("^([^/#]*)#[0-9#]+/");

  private static final Comparator<Entry> BEGINNING =
      Comparator.comparing(Entry::isEnding).thenComparing(Entry::born);

  /** By UID. */
  final Map<String, Entry> entries = new LinkedHashMap<>();

  /** By name. */
  final Map<String, Crew> crews = new LinkedHashMap<>();

  /** By UID: pods that no node can host, in the order of their arrival. They are not in line. */
  final Map<String, Unserved> unserved = new LinkedHashMap<>();

  /** Those that waited or ran, whether or not they are known still. */
  final RecentRequests recent = new RecentRequests();

  /** By name. */
  Map<String, NodeGpus> nodes = Map.of();

  /** By the claim's UID: what claims have of GPUs. */
  private final Map<String, List<ClaimUse>> claims = new LinkedHashMap<>();

  /** By the node's name. */
  private Map<String, NodeRules> rules = Map.of();

  /** What the nodes say. A node that changes is another object. */
  private IdentityHashMap<Node, Optional<NodeGpus>> parsed = new IdentityHashMap<>();

  /**
   * A pod that no node can host.
   *
   * @param pod the pod
   * @param size the size of its gang, or 1
   */
  record Unserved(Pod pod, int size) {}

  FleetView view;
  private final String policy;

  Roll(String policy) {
    this.policy = policy;
    view = new FleetView(List.of(), policy, recent);
  }

  /** Starts from the API's state; discards all earlier state. */
  void begin(
      Collection<Node> allNodes,
      Collection<Pod> pods,
      Map<String, List<ClaimUse>> allClaims,
      double nowS) {
    claims.clear();
    claims.putAll(allClaims);
    entries.clear();
    crews.clear();
    unserved.clear();
    view = new FleetView(List.of(), policy, recent);
    nodes = gpus(allNodes);
    rules = rules(allNodes);
    Restart.read(pods, Roll::requestOf, entries, crews);
    entries.values().forEach(recent::add);
    crews.values().forEach(crew -> crew.askedS = nowS);
    rebuild(nowS);
  }

  /** {@return whether what a claim has has changed; then it counts} */
  boolean claim(String uid, List<ClaimUse> now, double nowS) {
    List<ClaimUse> before = claims.getOrDefault(uid, List.of());
    if (now.equals(before)) {
      return false;
    }
    if (now.isEmpty()) {
      claims.remove(uid);
    } else {
      claims.put(uid, now);
    }
    before.stream().filter(one -> !now.contains(one)).forEach(one -> view.queue().end(one.name()));
    boolean isCounted = true;
    for (ClaimUse one : now) {
      isCounted &= before.contains(one) || view.count(one, false, nowS);
    }
    if (!isCounted) {
      rebuild(nowS); // pods that are not being bound yet make room
    }
    return true;
  }

  /** {@return whether the nodes have changed; if their GPUs have, the fleet was rebuilt} */
  boolean nodes(Collection<Node> all, double nowS) {
    Map<String, NodeGpus> found = gpus(all);
    boolean isSame = view.isOf(found);
    nodes = found;
    Map<String, NodeRules> now = rules(all);
    if (isSame && now.equals(rules)) {
      return false;
    }
    rules = now;
    if (isSame) {
      view.rules(rules);
      view.queue()
          .waiting()
          .forEach(name -> requireNonNull(crews.get(name), name).members.forEach(this::onNodes));
    } else {
      rebuild(nowS);
    }
    return true;
  }

  /** Tells the queue which nodes a waiting pod may take. */
  private void onNodes(String uid) {
    view.queue().change(entry(uid).crew, entry(uid).onServing(view));
  }

  /** {@return the rules of the nodes with GPUs} */
  private Map<String, NodeRules> rules(Collection<Node> all) {
    return all.stream()
        .map(NodeRules::of)
        .filter(one -> nodes.containsKey(one.name()))
        .collect(Collectors.toMap(NodeRules::name, one -> one, (one, other) -> other));
  }

  private Map<String, NodeGpus> gpus(Collection<Node> all) {
    IdentityHashMap<Node, Optional<NodeGpus>> before = parsed;
    parsed = new IdentityHashMap<>();
    Map<String, NodeGpus> found = new HashMap<>();
    for (Node node : all) {
      Optional<NodeGpus> known = before.get(node);
      Optional<NodeGpus> gpus = known == null ? NodeGpus.of(node) : known;
      parsed.put(node, gpus);
      gpus.ifPresent(one -> found.put(one.spec().name(), one));
    }
    return found;
  }

  /**
   * Rebuilds the fleet from the nodes and the known pods: first those that run or are being bound,
   * what claims have, then those that have a place, then the waiting ones. What runs keeps its
   * expected end, and the first gang that waits keeps its reservation.
   *
   * <p>What runs is counted in the order of its start, with pods that are about to end last: the
   * queue evicts those first that were counted last. The places of pods that are being evicted stay
   * free for those that they were evicted for.
   */
  void rebuild(double nowS) {
    FleetView before = view;
    List<String> line = new ArrayList<>(before.queue().waiting());
    view = new FleetView(nodes.values(), policy, recent);
    view.rules(rules);
    List<Crew> lost = new ArrayList<>();
    List<Crew> all = List.copyOf(crews.values());
    all.stream()
        .filter(crew -> crew.isGoing && !crew.isLeaving)
        .sorted(Comparator.comparing(this::oldest, BEGINNING))
        .forEach(crew -> keep(crew, lost, nowS));
    entries.values().stream()
        .filter(entry -> entry.isBound && !crews.containsKey(entry.crew))
        .sorted(BEGINNING)
        .toList()
        .forEach(entry -> adoptAlone(entry, nowS));
    for (ClaimUse claim : claims.values().stream().flatMap(List::stream).toList()) {
      if (!view.count(claim, true, nowS)) {
        LOG.warn("slots have what {} has: the pod that starts second does not start", claim);
      }
    }
    all.stream().filter(crew -> !crew.isGoing).forEach(crew -> keep(crew, lost, nowS));
    lost.sort(Comparator.comparingInt(crew -> rank(line, crew.name())));
    lost.forEach(this::waitAgain);
    view.takeOver(before);
  }

  /** {@return the member of a crew that began first; one that ends only if all do} */
  private Entry oldest(Crew crew) {
    return crew.members.stream().map(this::entry).min(BEGINNING).orElseThrow();
  }

  /** Pods that could not be evicted stay. */
  void evictionRefused() {
    for (Crew crew : crews.values()) {
      crew.isLeaving &= crew.members.stream().allMatch(uid -> entry(uid).isEnding());
    }
  }

  private void keep(Crew crew, List<Crew> lost, double nowS) {
    boolean isSure = crew.isPlaced && (crew.isGoing || crew.written.containsAll(crew.members));
    if (isSure && adoptTogether(crew, nowS)) {
      return;
    }
    lost.add(crew);
    crews.remove(crew.name());
    crew.isGoing = false;
    crew.back("its place was given up, as nodes have changed");
    List<String> bound = crew.members.stream().filter(uid -> entry(uid).isBound).toList();
    crew.members.removeAll(bound);
    crew.isBroken |= !bound.isEmpty();
    bound.forEach(uid -> adoptAlone(entry(uid), nowS));
    crew.members.forEach(uid -> entry(uid).place = null);
  }

  private static int rank(List<String> line, String name) {
    int at = line.indexOf(name);
    return at < 0 ? -1 : at; // crews that had a place come first
  }

  /**
   * Puts a crew back in line if none of its pods runs; otherwise its other pods join singly. Pods
   * that no node can host any more leave the line.
   */
  private void waitAgain(Crew crew) {
    if (crew.members.stream().anyMatch(uid -> isLacking(entry(uid)))) {
      for (String uid : crew.members) {
        unserved.put(uid, new Unserved(entry(uid).pod(), crew.terms().size()));
        entries.remove(uid);
      }
      return;
    }
    boolean isWhole = crew.members.size() == crew.terms().size() || !crew.isBroken;
    try {
      for (String uid : isWhole ? crew.members : Set.<String>of()) {
        view.queue().add(crew.terms(), entry(uid).onOpen(view));
        crews.put(crew.name(), crew);
        onNodes(uid);
      }
    } catch (IllegalArgumentException e) {
      LOG.warn("{} fits no more: {}", crew.name(), e.getMessage());
      view.queue().end(crew.name());
      crews.remove(crew.name());
    }
    if (!crews.containsKey(crew.name())) {
      crew.members.forEach(entries::remove);
    }
  }

  /** {@return the crew of a pod; null if it has none} */
  @Nullable Crew crewOf(String uid) {
    Entry entry = entries.get(uid);
    return entry == null ? null : crews.get(entry.crew);
  }

  private boolean isLacking(Entry entry) {
    return entry.request().flatMap(asked -> lack(entry.pod(), asked)).isPresent();
  }

  /** {@return why no node can host a pod, even if nothing else ran; empty if one can} */
  Optional<String> lack(Pod pod, PodRequest request) {
    if (view.serving(request).isEmpty()) {
      if (!request.isOfOneContainer()) {
        return Optional.of(
            "vgpu gives GPUs to one container of a pod, and to no init container, and no node has"
                + " NVIDIA's device plugin alone: ask for all GPUs in one container");
      }
      if (request.gpus() > PodRequest.MOST_GPUS) {
        return Optional.of(severalText(request));
      }
      return Optional.of(
          "no node's device plugin serves it: asked="
              + request.resources().stream().map(KubeletResource::resource).sorted().toList()
              + "; ask for "
              + KubeletResource.SLOT.resource()
              + " as well, or start vgpu-k8s node with --resources");
    }
    if (view.taking(pod, request).isEmpty()) {
      return Optional.of(
          "no node that serves it takes it: a node selector, a taint or a cordon keeps it away");
    }
    return view.lack(new Entry(pod, Optional.of(request)).onOpen(view))
        .map(why -> "refused by the nodes that there are: " + why);
  }

  private static String severalText(PodRequest request) {
    return "no node serves it: a virtual GPU is on at most "
        + PodRequest.MOST_GPUS
        + " GPUs: asked gpus="
        + request.gpus()
        + "; a gang of pods with fewer GPUs each would fit"
        + (request.isWhole() ? ", or a node where NVIDIA's device plugin gives whole GPUs" : "");
  }

  /**
   * {@return the pods on a node that are being evicted: until they have ended, their places are not
   * free}
   */
  List<String> leaving(String node) {
    return crews.values().stream()
        .filter(crew -> crew.isLeaving)
        .flatMap(crew -> crew.members.stream())
        .map(this::entry)
        .filter(entry -> entry.place != null && entry.place.node().equals(node))
        .map(Entry::uid)
        .toList();
  }

  Crew crew(String name) {
    return requireNonNull(crews.get(name), name);
  }

  Entry entry(String uid) {
    return requireNonNull(entries.get(uid), uid);
  }

  private boolean adoptTogether(Crew crew, double nowS) {
    List<Request> requests = new ArrayList<>();
    List<Place> places = new ArrayList<>();
    for (String uid : crew.members) {
      Entry entry = entries.get(uid);
      if (entry == null || entry.place == null || entry.request().isEmpty()) {
        return false;
      }
      if (!crew.isGoing && !view.serving(entry.request().get()).contains(entry.place.node())) {
        return false;
      }
      requests.add(entry.onFleet(view, Set.of()));
      places.add(entry.place);
    }
    Terms was = crew.terms();
    Terms now =
        new Terms(was.name(), requests.size(), was.preemptionClass(), was.runS(), was.closeness());
    double sinceS =
        crew.members.stream().mapToDouble(uid -> entry(uid).since(nowS)).max().orElse(nowS);
    return view.adopt(now, requests, places, sinceS);
  }

  /**
   * Counts a pod that runs on a node: on its own GPUs if they are known, otherwise on any. Of its
   * own GPUs, those count that are there: what it has on one that the node has lost for a moment,
   * it has nowhere else.
   */
  void adoptAlone(Entry entry, double nowS) {
    try {
      count(entry, nowS);
    } catch (IllegalArgumentException e) {
      LOG.warn("{} runs, and cannot be counted: {}", entry.fullName(), e.getMessage());
    }
  }

  private void count(Entry entry, double nowS) {
    // Also if there is no room for it now: its gang's name may become another gang's.
    entry.crew = entry.uid();
    String node = entry.pod().getSpec().getNodeName();
    Place place = entry.place;
    Place left = place == null ? null : view.withoutLost(place);
    int lost = place == null || left == null ? 0 : place.ids().size() - left.ids().size();
    Request request =
        view.state(node)
            .map(free -> entry.onNode(view, free, lost))
            .orElseGet(() -> entry.onFleet(view, Set.of()));
    Terms terms =
        Terms.of(
            entry.uid(),
            1,
            request.preemptionClass(),
            entry.request().map(PodRequest::runS).orElse(Double.POSITIVE_INFINITY));
    boolean isThere =
        (left != null && view.adopt(terms, List.of(request), List.of(left), entry.since(nowS)))
            || view.adoptSomewhere(terms, request, node, entry.since(nowS));
    if (!isThere) {
      if (entry.request().isPresent()) {
        LOG.warn("{} runs on {} and has no room there as far as is known", entry.fullName(), node);
      }
      return;
    }
    Crew crew = new Crew(terms);
    crew.members.add(entry.uid());
    crew.isPlaced = true;
    crew.isGoing = true;
    crews.put(entry.uid(), crew);
    // A known place stays: a GPU that is lost for a moment comes back with what runs on it.
    entry.place = place == null ? view.place(entry.uid()).orElseThrow() : place;
  }

  /** {@return whether members of a gang run, and are not ending} */
  boolean runs(String gang) {
    return entries.values().stream()
        .anyMatch(
            entry ->
                entry.isBound
                    && !entry.isEnding()
                    && entry
                        .request()
                        .flatMap(PodRequest::gang)
                        .filter(one -> gangName(entry.pod(), one.name()).equals(gang))
                        .isPresent());
  }

  static String gangName(Pod pod, String gang) {
    return pod.getMetadata().getNamespace() + "/" + gang;
  }

  /** {@return the name of a crew, if one with another size has the gang's own name} */
  static String ofSize(String gang, int size) {
    int slash = gang.indexOf('/');
    return gang.substring(0, slash) + "#" + size + gang.substring(slash);
  }

  /** {@return the gang's own name} */
  static String withoutSize(String crew) {
    return SIZE.matcher(crew).replaceFirst("$1/");
  }

  /**
   * {@return what a pod requests; empty if nothing, or if that is not understood} For a pod that
   * runs in a recorded place, what was reserved counts: nobody but the scheduler writes that.
   */
  static Optional<PodRequest> requestOf(Pod pod) {
    boolean isReserved = KnownPods.isBound(pod) && Place.of(pod).isPresent();
    try {
      Optional<PodRequest> said = PodRequests.of(pod);
      return isReserved ? PodRequests.reserved(pod, said).or(() -> said) : said;
    } catch (PodRefusedException e) {
      Optional<PodRequest> held =
          isReserved ? PodRequests.reserved(pod, Optional.empty()) : Optional.empty();
      if (held.isEmpty()) {
        LOG.warn(
            "{}: its request is not understood: {}", pod.getMetadata().getName(), e.getMessage());
      }
      return held;
    }
  }
}
