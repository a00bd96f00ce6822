package dev.vgpu.k8s.scheduler.line;

import static java.util.Objects.requireNonNull;

import dev.vgpu.fleet.gang.Decision;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.scheduler.claim.ClaimUse;
import dev.vgpu.k8s.scheduler.claim.KnownPods;
import dev.vgpu.request.MemorySize;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The line of the cluster's pods in front of the fleet. It takes the API's events about pods, and
 * makes answers and writes. Its whole state can be rebuilt from the API. Safe for use by several
 * threads; it never blocks and never writes to the API itself. Times are seconds of one clock.
 */
public final class PodLine {
  private static final Logger LOG = LoggerFactory.getLogger(PodLine.class);
  private static final double NO_EVICTION_S = 60;

  /**
   * How long places are kept for pods none of which comes to be bound. The time begins anew
   * whenever kube-scheduler asks about one of them. It tries each pod more often than this, except
   * pods that it tries only together with others.
   */
  private static final double UNCLAIMED_S = 300;

  private final Roll roll;
  private final SharedNodes shared;
  private final Reasons reasons;
  private final Bindings bindings;
  private final Entrance entrance;
  private final Preemption preemption;
  private final List<Action> outbox = new ArrayList<>();
  private double evictAgainS;

  /**
   * Creates an empty line.
   *
   * @param policy the placement policy's name, see {@link dev.vgpu.fleet.placement.Policies}
   */
  public PodLine(String policy) {
    roll = new Roll(policy);
    shared = new SharedNodes(roll);
    reasons = new Reasons(roll, shared);
    bindings = new Bindings(roll);
    entrance = new Entrance(roll, shared);
    preemption = new Preemption(roll);
  }

  /**
   * Sets the current nodes. Pods keep their places if those still exist.
   *
   * @param all every node
   */
  public synchronized void nodes(Collection<Node> all, double nowS) {
    if (roll.nodes(all, nowS)) {
      entrance.joinServed();
      decide(nowS);
    }
  }

  /** A claim, by its UID, has this of the nodes' GPUs now, and nothing else. */
  public synchronized void claim(String uid, List<ClaimUse> has, double nowS) {
    if (roll.claim(uid, has, nowS)) {
      decide(nowS);
    }
  }

  /** {@return the pod's node, or why it has none} Size of its gang: 1 without one, 0 if unknown. */
  public synchronized Answer filter(Pod pod, Set<String> listed, int size, double nowS) {
    Optional<Answer> refusal = admit(pod, size);
    if (refusal.isPresent()) {
      return refusal.get();
    }
    Entry entry = roll.entry(pod.getMetadata().getUid());
    Crew crew = roll.crew(entry.crew);
    crew.askedS = nowS;
    Place place = crew.isPlaced ? entry.place : null;
    if (place != null && listed.contains(place.node())) {
      return Answer.node(place.node());
    }
    if (place != null && crew.isGoing) {
      return Answer.none("its gang is being bound, and its node may not be taken: " + place.node());
    }
    if (place != null && isLeft(place) && roll.view.takes(place.node(), pod)) {
      return leavingText(place);
    }
    if (place != null) {
      entry.barred.add(place.node());
      giveBack(crew, "a member's node may not be taken: " + place.node());
    }
    shared.resolve();
    entry.listed(roll.view, listed);
    roll.view.queue().change(entry.crew, entry.onServing(roll.view));
    decide(nowS, crew.isGang() ? Set.of() : Set.of(entry.uid()));
    Place found = crew.isPlaced ? entry.place : null;
    if (found == null) {
      return Answer.none(reasons.of(crew));
    }
    if (listed.contains(found.node())) {
      return Answer.node(found.node());
    }
    // Either pods have to end on that node first, or it is barred next.
    return isLeft(found) ? leavingText(found) : filter(pod, listed, size, nowS);
  }

  /** {@return why a pod is not in line; empty if it is now} */
  private Optional<Answer> admit(Pod pod, int size) {
    boolean ignored = leavesAsOther(pod);
    return entrance.admit(pod, size);
  }

  /** {@return where a pod gets its place if proposed victims end, or why nowhere} Size as above. */
  public synchronized Answer preempt(Pod pod, List<Candidate> all, int size, double nowS) {
    Entry before = roll.entries.get(pod.getMetadata().getUid());
    Optional<Answer> refusal = admit(pod, size);
    if (refusal.isPresent()) {
      return refusal.get();
    }
    Entry entry = roll.entry(pod.getMetadata().getUid());
    shared.resolve();
    return preemption
        .node(entry, entry != before, all, nowS, crew -> placed(crew, Set.of(), nowS))
        .map(Answer::node)
        .orElseGet(() -> Answer.none("it would have no place without these pods either"));
  }

  /** {@return whether pods on a node are being evicted} */
  private boolean isLeft(Place place) {
    return !roll.leaving(place.node()).isEmpty();
  }

  private static Answer leavingText(Place place) {
    return Answer.none("its place is on " + place.node() + ", where pods have to end first");
  }

  /**
   * {@return pods whose gangs' sizes are to be looked up again, one of each gang}
   *
   * @param most the number of gangs at most; those after them come next
   */
  public synchronized List<Pod> unsized(int most) {
    return entrance.unsized.next(most);
  }

  /** The size of a gang is known now. Its pods join the line; nobody else wakes them. */
  public synchronized void sized(Pod member, int size, double nowS) {
    Roll.requestOf(member)
        .flatMap(PodRequest::gang)
        .map(gang -> Roll.gangName(member, gang.name()))
        .map(entrance.unsized::take)
        .orElse(List.of())
        .forEach(pod -> entrance.waitsOutside(pod, size));
    entrance.joinServed();
    decide(nowS);
  }

  /**
   * {@return completes when the pod may be bound, with an empty text, or with the reason why it may
   * not; a second call gets the same result}
   */
  public synchronized CompletableFuture<String> arrive(String uid, String node) {
    Entry entry = roll.entries.get(uid);
    Crew crew = entry == null ? null : roll.crews.get(entry.crew);
    if (entry == null || crew == null || !crew.isPlaced || entry.place == null) {
      return CompletableFuture.completedFuture("it has no place; it has to be filtered again");
    }
    if (!entry.place.node().equals(node)) {
      return CompletableFuture.completedFuture("its place is on " + entry.place.node());
    }
    crew.arrived.add(uid);
    CompletableFuture<String> go = crew.go;
    tryGo(crew);
    return go;
  }

  /**
   * A pod waited too long to be bound: its gang gives its places back, unless being bound. Those
   * that did not come leave the line until they are asked about again. Otherwise the gang would get
   * its places back at once, also if they can never come.
   */
  public synchronized void tooLate(String uid, String reason, double nowS) {
    Crew crew = roll.crewOf(uid);
    if (crew != null && crew.isPlaced && !crew.isGoing) {
      leave(crew, reason);
      decide(nowS);
    }
  }

  private void leave(Crew crew, String reason) {
    List<String> missing =
        crew.members.stream().filter(one -> !crew.arrived.contains(one)).toList();
    giveBack(crew, reason);
    missing.forEach(one -> drop(requireNonNull(roll.entries.remove(one), one)));
  }

  /** A pod's place cannot be had: its gang gives its places back, unless being bound. */
  public synchronized void giveUp(String uid, String reason, double nowS) {
    Crew crew = roll.crewOf(uid);
    if (crew != null && crew.isPlaced && !crew.isGoing) {
      giveBack(crew, reason);
      decide(nowS);
    }
  }

  /**
   * {@return the annotations to write to a pod with its binding; empty if it may not be bound} Its
   * binding has begun then. A gang's annotations are written a second time here, in case a still
   * older write arrived after the first.
   */
  public synchronized Map<String, String> annotations(String uid, double nowS) {
    Entry entry = roll.entries.get(uid);
    Crew crew = roll.crewOf(uid);
    if (entry == null || crew == null || crew.isLeaving || !crew.isGoing || entry.place == null) {
      return Map.of();
    }
    bindings.begin(uid, crew);
    return annotations(entry, crew, nowS);
  }

  /** A pod's binding has succeeded, was refused, or nobody knows. */
  public synchronized void bindingEnded(String uid, boolean isRefused) {
    bindings.end(uid, isRefused);
  }

  /** {@return a doubt whether a pod's crew is bound, if its own node may not be taken any more} */
  public synchronized Optional<Bindings.Doubt> doubt(String uid, Set<String> listed) {
    return bindings.doubt(uid, listed);
  }

  /** No member of a pod's crew was bound when the API was asked about it. */
  public synchronized void notBound(String uid, Bindings.Doubt doubt) {
    bindings.notBound(uid, doubt);
  }

  private Map<String, String> annotations(Entry entry, Crew crew, double nowS) {
    Place place = requireNonNull(entry.place, "place");
    NodeGpus node = roll.nodes.get(place.node());
    MemorySize card = node == null ? MemorySize.ZERO : node.spec().gpuMemory();
    return place.annotations(
        entry.request().orElseThrow(), card, crew.name(), crew.terms().size(), nowS);
  }

  private void tryGo(Crew crew) {
    if (crew.mayGo() && shared.mayGo(crew)) {
      crew.isGoing = true;
      crew.go.complete("");
    }
  }

  /** A pod's place was recorded; ignored if the pod does not have that place any more. */
  public synchronized void written(String uid, Place place) {
    Entry entry = roll.entries.get(uid);
    Crew crew = entry == null ? null : roll.crews.get(entry.crew);
    if (entry != null && crew != null && crew.isPlaced && place.equals(entry.place)) {
      crew.written.add(uid);
      tryGo(crew);
    }
  }

  /** Offline pods could not be evicted: they keep their places; no evictions for a while. */
  public synchronized void evictionRefused(String crewName, String reason, double nowS) {
    LOG.warn("eviction for {} was refused: {}", reasons.label(crewName), reason);
    evictAgainS = nowS + NO_EVICTION_S;
    for (Crew crew : roll.crews.values()) {
      if (!crew.isGoing && (crew.name().equals(crewName) || !crew.inTheWay.isEmpty())) {
        crew.back("those in its way could not be evicted: " + reason);
      }
    }
    roll.evictionRefused();
    roll.rebuild(nowS);
    decide(nowS);
  }

  /** Takes over the state of a pod from the API. */
  public synchronized void see(Pod pod, double nowS) {
    String phase = pod.getStatus() == null ? "" : pod.getStatus().getPhase();
    if ("Succeeded".equals(phase) || "Failed".equals(phase)) {
      gone(pod.getMetadata().getUid(), nowS);
      return;
    }
    Entry entry = roll.entries.get(pod.getMetadata().getUid());
    if (entry != null) {
      entry.see(pod);
    }
    if (!KnownPods.isBound(pod)) {
      seeWaiting(pod, nowS);
      return;
    }
    entrance.forget(pod.getMetadata().getUid());
    if (entry != null && entry.isBound) {
      return;
    }
    String node = pod.getSpec().getNodeName();
    if (entry != null && entry.place != null && entry.place.node().equals(node)) {
      Crew crew = roll.crews.get(entry.crew);
      if (crew != null && crew.isPlaced) {
        entry.isBound = true;
        shared.waitingFor(entry).forEach(this::tryGo);
        return;
      }
    }
    if (entry != null) {
      drop(entry);
    }
    Entry seen = new Entry(pod, Roll.requestOf(pod));
    seen.isBound = true;
    seen.place = Restart.place(pod, node);
    roll.entries.put(seen.uid(), seen);
    roll.recent.add(seen);
    roll.adoptAlone(seen, nowS);
    shared.waitingFor(seen).forEach(this::tryGo);
  }

  private void seeWaiting(Pod pod, double nowS) {
    boolean isOther = leavesAsOther(pod);
    if (entrance.sees(pod, isOther) || entrance.waitsUnanswered(pod)) {
      entrance.joinServed();
      decide(nowS);
    }
  }

  /** {@return whether a pod has left the line, to join it anew with another request} */
  private boolean leavesAsOther(Pod pod) {
    Optional<Entry> old = entrance.changed(pod);
    old.ifPresent(this::drop);
    old.map(Entry::uid).ifPresent(roll.entries::remove);
    return old.isPresent();
  }

  /** A pod has ended or was deleted: its GPUs are free. */
  public synchronized void gone(String uid, double nowS) {
    entrance.forget(uid);
    Entry entry = roll.entries.remove(uid);
    if (entry == null) {
      return;
    }
    drop(entry);
    for (Crew crew : List.copyOf(roll.crews.values())) {
      if (crew.inTheWay.remove(uid)) {
        tryGo(crew);
        if (crew.inTheWay.isEmpty()) {
          wake(crew, nowS);
        }
      }
    }
    decide(nowS);
  }

  /** The cluster's scheduler may not have listed the nodes of those that were not asked to bind. */
  private void wake(Crew crew, double nowS) {
    crew.askedS = nowS;
    for (String uid : crew.members) {
      Entry entry = roll.entry(uid);
      if (entry.place != null && !entry.isBound && !crew.arrived.contains(uid)) {
        outbox.add(new Action.Write(entry.pod(), entry.place, annotations(entry, crew, nowS)));
      }
    }
  }

  private void drop(Entry entry) {
    Crew crew = roll.crews.get(entry.crew);
    if (crew == null || !crew.members.contains(entry.uid())) {
      return;
    }
    if (crew.isPlaced && !crew.isGoing) {
      giveBack(crew, "a member has left: " + entry.fullName());
    }
    entrance.leave(crew, entry.uid());
  }

  private void giveBack(Crew crew, String reason) {
    roll.view.queue().giveBack(crew.name());
    crew.members.forEach(uid -> place(uid, null));
    crew.back(reason);
  }

  private void place(String uid, @Nullable Place place) {
    Entry entry = roll.entries.get(uid);
    if (entry != null) {
      entry.place = place;
    }
  }

  /** Decides again, because time has passed. */
  public synchronized void tick(double nowS) {
    preemption.endOverdue(nowS);
    roll.crews.values().stream()
        .filter(crew -> crew.isUnclaimed() && nowS - crew.askedS > UNCLAIMED_S)
        .toList()
        .forEach(crew -> leave(crew, "none of its pods came to be bound"));
    decide(nowS);
  }

  private void decide(double nowS) {
    decide(nowS, Set.of());
  }

  /** The answer tells the pods in {@code unwritten} their place; it is written on binding. */
  private void decide(double nowS, Set<String> unwritten) {
    for (List<Crew> apart = shared.apart(); !apart.isEmpty(); apart = shared.apart()) {
      apart.forEach(crew -> giveBack(crew, "a pod whose node it must share has moved"));
    }
    shared.resolve();
    Map<String, List<Pod>> victims = new LinkedHashMap<>();
    roll.view.queue().allowEviction(nowS >= evictAgainS);
    for (Decision decision : roll.view.queue().decide(nowS)) {
      Crew crew = roll.crews.get(decision.gang());
      if (crew == null) {
        continue;
      }
      if (decision instanceof Decision.Evict evict) {
        victims
            .computeIfAbsent(evict.forGang(), key -> new ArrayList<>())
            .addAll(evict(crew, evict.forGang()));
      } else {
        placed(crew, unwritten, nowS);
      }
    }
    victims.values().removeIf(List::isEmpty);
    victims.forEach((crew, pods) -> outbox.add(new Action.Evict(pods, crew)));
  }

  private void placed(Crew crew, Set<String> unwritten, double nowS) {
    crew.isPlaced = true;
    crew.askedS = nowS;
    for (String uid : crew.members) {
      Entry entry = roll.entry(uid);
      Place place = roll.view.place(uid).orElseThrow();
      entry.sinceS = nowS;
      entry.place = place;
      crew.inTheWay.addAll(roll.leaving(place.node()));
      if (!unwritten.contains(uid)) {
        outbox.add(new Action.Write(entry.pod(), place, annotations(entry, crew, nowS)));
      }
    }
  }

  /** {@return the pods to evict: not those that are ending anyway, or are not bound yet} */
  private List<Pod> evict(Crew victim, String forCrew) {
    if (!victim.isGoing) {
      victim.members.forEach(uid -> place(uid, null));
      victim.back("its place was given to " + reasons.label(forCrew));
      return List.of();
    }
    victim.isLeaving = true;
    roll.view.queue().end(victim.name());
    return victim.members.stream()
        .map(roll::entry)
        .filter(entry -> !entry.isEnding())
        .map(Entry::pod)
        .toList();
  }

  /** {@return the writes decided since the last call} */
  public synchronized List<Action> drain() {
    List<Action> all = List.copyOf(outbox);
    outbox.clear();
    return all;
  }

  /** Starts from the API's state; discards all earlier state. What claims have is by their UIDs. */
  public synchronized void begin(
      Collection<Node> allNodes,
      Collection<Pod> pods,
      Map<String, List<ClaimUse>> claims,
      double nowS) {
    outbox.clear();
    entrance.unsized.clear();
    roll.begin(allNodes, pods, claims, nowS);
    shared.begin();
    preemption.begin();
    Restart.waiting(pods).forEach(entrance::waits);
    entrance.joinServed();
    roll.crews.values().stream()
        .filter(crew -> crew.isPlaced && crew.members.stream().anyMatch(this::isUnanswered))
        .forEach(crew -> wake(crew, nowS));
    decide(nowS);
  }

  private boolean isUnanswered(String uid) {
    return Restart.isUnanswered(roll.entry(uid).pod());
  }
}
