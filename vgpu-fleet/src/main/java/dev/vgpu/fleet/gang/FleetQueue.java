package dev.vgpu.fleet.gang;

import dev.vgpu.fleet.model.Fit;
import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.placement.PlacementPolicy;
import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntPredicate;
import org.jspecify.annotations.Nullable;

/**
 * The queue of gangs for a fleet. Gangs start in order of class, then of arrival; either all
 * members of a gang start, or none. Confined to one thread; the time is an argument.
 *
 * <p>The first gang that does not fit gets a {@link Reservation}: the earliest time at which it
 * fits if all running gangs end as expected, and its nodes at that time. Until then, another gang
 * may start only if it ends before that time, stays off those nodes, or has a more urgent class. So
 * no later start of equal or lower class delays the first gang. The reserved nodes stay the same
 * until the gang starts. If they were chosen anew each time, gangs that run longer than expected
 * could delay it without bound.
 *
 * <p>A gang that would not fit even if nothing else ran gets no reservation, and evicts nobody: for
 * the gangs behind it, it is as if it were not there. It stays in the queue, see {@link #obstacle}.
 *
 * <p>If an online or nearline gang does not fit, offline gangs are evicted, provided that this
 * makes room. The eviction is first tried on the model. Gangs that are not in the way stay.
 */
public final class FleetQueue {
  static final IntPredicate ANY = node -> true;

  private final Fleet fleet;
  private final PlacementPolicy policy;
  private final Trial trial;
  private final Planner planner;
  private final List<Gang> waiting = new ArrayList<>();
  private final Map<String, Gang> running = new LinkedHashMap<>();
  private final Map<String, Gang> known = new LinkedHashMap<>();
  private final Set<Object> refused = new HashSet<>();
  private final Obstacles obstacles = new Obstacles();
  private @Nullable Reservation reservation;
  private long numbers;
  private boolean mayEvict = true;

  /**
   * Creates an empty queue.
   *
   * @param fleet the fleet; only this queue may change it
   * @param policy chooses the nodes
   */
  public FleetQueue(Fleet fleet, PlacementPolicy policy) {
    this.fleet = fleet;
    this.policy = policy;
    this.trial = new Trial(fleet, policy);
    this.planner = new Planner(fleet, trial);
  }

  /**
   * Adds a member to a gang. The gang waits from its first member on.
   *
   * @param terms the gang's terms, the same for each member
   * @param member the member's request
   * @throws IllegalArgumentException if the request does not fit any of its nodes even if they are
   *     empty (the message says what would fit), the gang is complete or running, or its terms
   *     differ
   */
  public void add(Terms terms, Request member) {
    Fit.require(fleet.nodes(), member);
    if (member.preemptionClass() != terms.preemptionClass()) {
      throw new IllegalArgumentException(
          "a member's class must equal its gang's: gang="
              + terms.name()
              + " class="
              + terms.preemptionClass()
              + " member="
              + member.name()
              + " class="
              + member.preemptionClass());
    }
    Gang gang = known.get(terms.name());
    if (gang == null) {
      gang = new Gang(terms, numbers++);
      known.put(terms.name(), gang);
      waiting.add(gang);
      waiting.sort(Gang.ORDER);
    }
    if (running.containsKey(gang.name()) || gang.isComplete() || !gang.terms().equals(terms)) {
      throw new IllegalArgumentException(
          "not of this gang: " + member.name() + " gang=" + gang.terms());
    }
    gang.members().add(member);
    obstacles.forget(gang);
  }

  /**
   * Ends a gang, or removes it from the queue. An unknown name has no effect.
   *
   * @param name the gang's name
   */
  public void end(String name) {
    Gang gang = known.remove(name);
    if (gang == null) {
      return;
    }
    obstacles.forget(gang);
    if (running.remove(name) != null) {
      gang.placements().forEach(fleet::release);
      placesChanged();
    } else {
      waiting.remove(gang);
    }
    if (reservation != null && reservation.gang().equals(name)) {
      reservation = null;
      placesChanged();
    }
  }

  /**
   * Adopts a gang that runs already, as reported by the caller: all of it, or nothing.
   *
   * @param terms the gang's terms
   * @param placements where its members are; they are checked
   * @param nowS the current time in seconds, from which its expected end is counted
   * @throws IllegalArgumentException if the name is known, the number of members is wrong, or a
   *     member does not fit where it is reported; the message says which
   */
  public void adopt(Terms terms, List<Placement> placements, double nowS) {
    if (known.containsKey(terms.name()) || placements.size() != terms.size()) {
      throw new IllegalArgumentException(
          "the gang is known already, or members are missing: gang="
              + terms
              + " placements="
              + placements.size());
    }
    List<Placement> done = new ArrayList<>();
    try {
      for (Placement placement : placements) {
        fleet.adopt(placement);
        done.add(placement);
      }
    } catch (IllegalArgumentException e) {
      trial.undo(done);
      throw e;
    }
    Gang gang = new Gang(terms, numbers++);
    placements.forEach(placement -> gang.members().add(placement.request()));
    gang.start(placements, nowS);
    known.put(terms.name(), gang);
    running.put(terms.name(), gang);
    placesChanged();
  }

  /**
   * Takes back a gang that was started but did not begin. It waits again, at its old place in line.
   * If no such gang runs, has no effect.
   *
   * @param name the gang's name
   */
  public void giveBack(String name) {
    Gang gang = running.remove(name);
    if (gang == null) {
      return;
    }
    gang.placements().forEach(fleet::undo);
    gang.stop();
    waiting.add(gang);
    waiting.sort(Gang.ORDER);
    placesChanged();
  }

  /**
   * Removes one member from its gang, and frees what it holds at once. A waiting gang is not tried
   * again until another member is added. A gang without members ends. Unknown names have no effect.
   *
   * @param name the gang's name
   * @param member the member's name
   */
  public void leave(String name, String member) {
    Gang gang = known.get(name);
    if (gang == null || gang.members().stream().noneMatch(one -> one.name().equals(member))) {
      return;
    }
    obstacles.forget(gang);
    gang.members().removeIf(one -> one.name().equals(member));
    gang.leave(member).ifPresent(fleet::release);
    placesChanged();
    if (gang.members().isEmpty()) {
      end(name);
    } else if (reservation != null && reservation.gang().equals(name)) {
      reservation = null;
    }
  }

  /**
   * Sets whether offline gangs may be evicted; by default they may.
   *
   * @param allowed whether they may
   */
  public void allowEviction(boolean allowed) {
    mayEvict = allowed;
  }

  /**
   * Replaces the request of a member of a waiting gang. If no such gang waits, has no effect. If
   * the new request may not use the gang's reserved place, the gang gets another one.
   *
   * @param gang the gang's name
   * @param member the new request, under the same name
   */
  public void change(String gang, Request member) {
    Gang found = known.get(gang);
    if (found == null || running.containsKey(gang)) {
      return;
    }
    Reservation held = reservation;
    boolean isStale =
        held != null
            && held.gang().equals(gang)
            && found.members().stream()
                .anyMatch(one -> one.name().equals(member.name()) && isStale(held, one, member));
    boolean isOther =
        found.members().stream()
            .anyMatch(one -> one.name().equals(member.name()) && !one.fitsLike(member));
    if (isOther) {
      obstacles.forget(found);
    }
    found.members().replaceAll(one -> one.name().equals(member.name()) ? member : one);
    if (isOther) {
      obstacles.forget(found); // again: only now may it depend on another one
    }
    if (isStale) {
      reservation = null;
    }
  }

  /**
   * {@return whether a reservation was made for a request, and may not serve the new one} It is
   * kept wherever possible: if it were made anew each time, the wait would have no bound.
   */
  private boolean isStale(Reservation held, Request before, Request now) {
    return !before.shape().equals(now.shape())
        || !before.sameNodeAs().equals(now.sameNodeAs())
        || !before.spread().equals(now.spread())
        || held.nodes().stream()
            .map(node -> fleet.nodes().get(node).name())
            .anyMatch(name -> before.allows(name) && !now.allows(name));
  }

  /**
   * Takes over a reservation that another queue made for a gang that waits here as well, for
   * example before nodes were added. Has no effect if this queue has one, if the gang does not wait
   * here with all its members, or if it would not fit on the reserved nodes even if nothing else
   * ran there: then it gets another reservation.
   *
   * @param held the reservation, with this fleet's numbers of its nodes
   */
  public void takeOver(Reservation held) {
    Gang gang = known.get(held.gang());
    if (reservation != null || gang == null || running.containsKey(held.gang())) {
      return;
    }
    List<Gang> bundle = planner.bundle(gang, dependents(), running.keySet());
    if (!bundle.isEmpty()
        && planner.mayFit(members(bundle), gang.terms(), held.nodes(), running.values())) {
      reservation = held;
      refused.clear();
    }
  }

  /** {@return the reservation for the first gang that does not fit} */
  public Optional<Reservation> reservation() {
    return Optional.ofNullable(reservation);
  }

  /**
   * {@return why a waiting gang would not fit even if nothing else ran, as found by the last {@link
   * #decide}; empty if it would, or is not complete}
   *
   * @param gang its name
   */
  public Optional<String> obstacle(String gang) {
    return obstacles.of(gang);
  }

  /** Requests that did not fit may fit now. */
  private void placesChanged() {
    refused.clear();
    obstacles.placesChanged();
  }

  /** {@return the names of the waiting gangs, in order} */
  public List<String> waiting() {
    return waiting.stream().map(Gang::name).toList();
  }

  /** {@return the names of the running gangs} */
  public Collection<String> running() {
    return List.copyOf(running.keySet());
  }

  /**
   * Starts all gangs that may start now.
   *
   * @param nowS the current time in seconds
   * @return the decisions, in order
   */
  public List<Decision> decide(double nowS) {
    policy.settle(fleet);
    List<Decision> decisions = new ArrayList<>();
    boolean isFirst = true;
    List<Gang> dependents = dependents();
    for (Gang gang : List.copyOf(waiting)) {
      List<Gang> bundle = planner.bundle(gang, dependents, running.keySet());
      if (bundle.isEmpty() || running.containsKey(gang.name())) {
        continue;
      }
      if (tryStart(gang, bundle, nowS, isFirst, decisions)) {
        continue;
      }
      if (isFirst) {
        isFirst = !hold(gang, bundle);
      }
    }
    return decisions;
  }

  private List<Gang> dependents() {
    return waiting.stream().filter(Gang::isDependent).toList();
  }

  /**
   * Starts a waiting gang in the room that running gangs leave, if it fits there; these have ended
   * then. Otherwise nothing changes. The other waiting gangs do not come before it.
   *
   * @param name the gang's name
   * @param member the request that replaces a member's own one for this, under the same name
   * @param leaving the names of the running gangs; unknown names have no effect
   * @param isAhead whether it may use reserved nodes also if {@link #decide} would not let it
   * @param nowS the current time in seconds
   * @return the started gangs; empty if it does not fit, does not wait, or is not complete
   */
  public List<Decision> startInstead(
      String name, Request member, Set<String> leaving, boolean isAhead, double nowS) {
    List<Decision> decisions = new ArrayList<>();
    Gang gang = known.get(name);
    List<Gang> bundle =
        gang == null || running.containsKey(name)
            ? List.of()
            : planner.bundle(gang, dependents(), running.keySet());
    if (bundle.isEmpty()) {
      return decisions;
    }
    List<Request> members = new ArrayList<>(members(bundle));
    members.removeIf(one -> one.name().equals(member.name()));
    members.add(0, member); // of equal ones, the first is placed first
    List<Gang> ended = running.values().stream().filter(g -> leaving.contains(g.name())).toList();
    boolean mayUseAll = isAhead || mayUseAll(bundle.get(0), bundle, nowS);
    planner
        .instead(ended, members, bundle.get(0).terms(), mayUseAll ? ANY : this::isNotReserved)
        .ifPresent(
            placed -> {
              ended.forEach(one -> known.remove(one.name()));
              ended.forEach(one -> running.remove(one.name()));
              placesChanged();
              start(bundle, placed, nowS, decisions);
            });
    return decisions;
  }

  private boolean isNotReserved(int node) {
    Reservation held = reservation;
    return held == null || !held.nodes().contains(node);
  }

  private static List<Request> members(List<Gang> bundle) {
    return bundle.stream().flatMap(gang -> gang.members().stream()).toList();
  }

  private boolean tryStart(
      Gang gang, List<Gang> bundle, double nowS, boolean isFirst, List<Decision> decisions) {
    List<Request> members = members(bundle);
    Terms terms = gang.terms();
    boolean mayUseAll = isFirst || mayUseAll(gang, bundle, nowS);
    Object key =
        List.of(members.stream().map(Request::shape).toList(), terms.closeness(), mayUseAll);
    boolean isPlain =
        members.stream()
            .allMatch(m -> m.sameNodeAs().isEmpty() && m.spread().isEmpty() && m.nodes().isEmpty());
    Optional<List<Placement>> placed = Optional.empty();
    if (!isPlain || !refused.contains(key)) {
      placed = trial.place(members, terms.closeness(), mayUseAll ? ANY : this::isNotReserved);
      if (placed.isEmpty() && isPlain) {
        refused.add(key);
      }
    }
    if (placed.isEmpty()
        && isFirst
        && mayEvict
        && obstacles.of(gang.name()).isEmpty()
        && terms.preemptionClass().isMoreUrgentThan(PreemptionClass.OFFLINE)) {
      placed = evict(gang, members, decisions);
    }
    placed.ifPresent(list -> start(bundle, list, nowS, decisions));
    return placed.isPresent();
  }

  /** {@return whether it may use reserved nodes: it ends in time or is more urgent} */
  private boolean mayUseAll(Gang gang, List<Gang> bundle, double nowS) {
    Reservation held = reservation;
    if (held == null) {
      return true;
    }
    double end = nowS + bundle.stream().mapToDouble(one -> one.terms().runS()).max().orElse(0);
    Gang holder = known.get(held.gang());
    return (Double.isFinite(end) && end <= held.startS())
        || holder == gang
        || (holder != null
            && gang.terms().preemptionClass().isMoreUrgentThan(holder.terms().preemptionClass()));
  }

  private void start(
      List<Gang> bundle, List<Placement> placed, double nowS, List<Decision> decisions) {
    for (Gang gang : bundle) {
      Set<String> names = new HashSet<>();
      gang.members().forEach(member -> names.add(member.name()));
      List<Placement> own =
          placed.stream().filter(one -> names.contains(one.request().name())).toList();
      gang.start(own, nowS);
      obstacles.forget(gang);
      waiting.remove(gang);
      running.put(gang.name(), gang);
      decisions.add(new Decision.Start(gang.name(), own));
      if (reservation != null && reservation.gang().equals(gang.name())) {
        reservation = null;
        placesChanged();
      }
    }
  }

  private Optional<List<Placement>> evict(
      Gang gang, List<Request> members, List<Decision> decisions) {
    Optional<Planner.Eviction> eviction = planner.evictFor(members, gang.terms(), running.values());
    if (eviction.isEmpty()) {
      return Optional.empty();
    }
    for (Gang victim : eviction.get().victims()) {
      victim.stop();
      running.remove(victim.name());
      waiting.add(victim);
      decisions.add(new Decision.Evict(victim.name(), gang.name()));
    }
    waiting.sort(Gang.ORDER);
    placesChanged();
    return Optional.of(eviction.get().placed());
  }

  /**
   * Makes a reservation for the first gang that does not fit, unless it has one.
   *
   * @return whether it has one; not if it would not fit even if nothing else ran
   */
  private boolean hold(Gang gang, List<Gang> bundle) {
    if (reservation != null && reservation.gang().equals(gang.name())) {
      return true;
    }
    if (obstacles.of(gang.name()).isPresent()) {
      return false;
    }
    List<Request> members = members(bundle);
    Optional<Reservation> found =
        planner.reserve(gang.name(), members, gang.terms(), running.values());
    if (found.isEmpty()) {
      obstacles.found(gang, members, fleet.nodes());
      return false;
    }
    reservation = found.get();
    refused.clear();
    return true;
  }
}
