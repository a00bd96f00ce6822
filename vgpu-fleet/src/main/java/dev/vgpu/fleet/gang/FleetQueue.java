package dev.vgpu.fleet.gang;

import dev.vgpu.PreemptionClass;
import dev.vgpu.fleet.model.Fit;
import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.placement.PlacementPolicy;
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
 * The line in front of a fleet. Gangs start in order of class, then of request; all members or
 * none. Confined to one thread; time comes in as an argument.
 *
 * <p>The first gang that does not fit gets a {@link Reservation}: the earliest time at which it
 * fits if what runs ends as expected, and its nodes then. Until then others may start if they end
 * before that time, or stay off those nodes; so nothing that starts later delays it. It keeps these
 * nodes until it starts: were they chosen anew each time, work that runs longer than expected could
 * push it back without end.
 *
 * <p>Where an online or nearline gang does not fit, offline gangs are evicted if that makes room,
 * which is tried in memory first; whoever is not in the way stays.
 */
public final class FleetQueue {
  static final IntPredicate ANY = node -> true;

  private final Fleet fleet;
  private final Trial trial;
  private final Planner planner;
  private final List<Gang> waiting = new ArrayList<>();
  private final Map<String, Gang> running = new LinkedHashMap<>();
  private final Map<String, Gang> known = new LinkedHashMap<>();
  private final Set<Object> refused = new HashSet<>();
  private @Nullable Reservation reservation;
  private long numbers;
  private boolean mayEvict = true;

  /**
   * Makes an empty line.
   *
   * @param fleet where gangs are placed; nobody else writes to it
   * @param policy decides where
   */
  public FleetQueue(Fleet fleet, PlacementPolicy policy) {
    this.fleet = fleet;
    this.trial = new Trial(fleet, policy);
    this.planner = new Planner(fleet, trial);
  }

  /**
   * Adds a member to a gang; the gang waits from its first member on.
   *
   * @param terms the gang's, the same for each member
   * @param member what it needs
   * @throws IllegalArgumentException if the request could not even be met on an empty fleet (the
   *     message says what could), the gang is complete, or its terms are others
   */
  public void add(Terms terms, Request member) {
    Fit.require(fleet.nodes(), member);
    if (member.preemptionClass() != terms.preemptionClass()) {
      throw new IllegalArgumentException(
          "a member has the class of its gang: gang="
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
  }

  /**
   * Ends a gang, or takes it out of the line. An unknown name does nothing.
   *
   * @param name the gang's name
   */
  public void end(String name) {
    Gang gang = known.remove(name);
    if (gang == null) {
      return;
    }
    if (running.remove(name) != null) {
      gang.placements().forEach(fleet::release);
      refused.clear();
    } else {
      waiting.remove(gang);
    }
    if (reservation != null && reservation.gang().equals(name)) {
      reservation = null;
      refused.clear();
    }
  }

  /**
   * Takes over a gang that runs already, as somebody else reports it: all of it, or nothing.
   *
   * @param terms the gang's
   * @param placements where its members are; nothing of it is trusted
   * @param nowS the time in seconds; its expected end is counted from now
   * @throws IllegalArgumentException if the name is known, the gang is not whole, or a member has
   *     no room where it is said to be; the message says which
   */
  public void adopt(Terms terms, List<Placement> placements, double nowS) {
    if (known.containsKey(terms.name()) || placements.size() != terms.size()) {
      throw new IllegalArgumentException(
          "known already, or not whole: gang=" + terms + " placements=" + placements.size());
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
    refused.clear();
  }

  /**
   * Takes a gang that was started but did not begin off its nodes; it waits again, at its old place
   * in line. A name that does not run does nothing.
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
    refused.clear();
  }

  /**
   * Takes one member out of its gang: what it holds is free at once. A gang that waits is not tried
   * again before another member has come; one without members ends. Unknown names do nothing.
   *
   * @param name the gang's name
   * @param member the member's name
   */
  public void leave(String name, String member) {
    Gang gang = known.get(name);
    if (gang == null || !gang.members().removeIf(one -> one.name().equals(member))) {
      return;
    }
    gang.leave(member).ifPresent(fleet::release);
    refused.clear();
    if (gang.members().isEmpty()) {
      end(name);
    } else if (reservation != null && reservation.gang().equals(name)) {
      reservation = null;
    }
  }

  /**
   * Says whether offline gangs may be evicted; they may at first.
   *
   * @param allowed whether they may
   */
  public void allowEviction(boolean allowed) {
    mayEvict = allowed;
  }

  /**
   * Changes what a member of a waiting gang needs; a name that does not wait does nothing.
   *
   * @param gang the gang's name
   * @param member the member as it is now, under its old name
   */
  public void change(String gang, Request member) {
    Gang found = known.get(gang);
    if (found != null && !running.containsKey(gang)) {
      found.members().replaceAll(one -> one.name().equals(member.name()) ? member : one);
    }
  }

  /** {@return the place that is held for the first gang that does not fit} */
  public Optional<Reservation> reservation() {
    return Optional.ofNullable(reservation);
  }

  /** {@return the names of the gangs that wait, in order} */
  public List<String> waiting() {
    return waiting.stream().map(Gang::name).toList();
  }

  /** {@return the names of the gangs that run} */
  public Collection<String> running() {
    return List.copyOf(running.keySet());
  }

  /**
   * Starts all that may start now.
   *
   * @param nowS the time in seconds
   * @return what was decided, in order
   */
  public List<Decision> decide(double nowS) {
    List<Decision> decisions = new ArrayList<>();
    boolean isFirst = true;
    List<Gang> dependents = waiting.stream().filter(Gang::isDependent).toList();
    for (Gang gang : List.copyOf(waiting)) {
      List<Gang> bundle = bundle(gang, dependents);
      if (bundle.isEmpty() || running.containsKey(gang.name())) {
        continue;
      }
      if (tryStart(gang, bundle, nowS, isFirst, decisions)) {
        continue;
      }
      if (isFirst) {
        isFirst = false;
        hold(gang, bundle);
      }
    }
    return decisions;
  }

  /**
   * {@return the gang and those that have to be on its nodes; empty if it cannot be tried, as a
   * member of it or whom it depends on is missing}
   */
  private List<Gang> bundle(Gang gang, List<Gang> dependents) {
    List<Gang> bundle = new ArrayList<>(List.of(gang));
    for (Gang other : dependents) {
      if (!running.containsKey(other.name())
          && !bundle.contains(other)
          && bundle.stream().anyMatch(other::dependsOn)) {
        bundle.add(other);
      }
    }
    Set<String> names = new HashSet<>();
    bundle.forEach(one -> one.members().forEach(member -> names.add(member.name())));
    boolean isReady =
        bundle.stream().allMatch(Gang::isComplete)
            && bundle.stream()
                .flatMap(one -> one.members().stream())
                .map(Request::sameNodeAs)
                .allMatch(
                    name ->
                        name.isEmpty()
                            || names.contains(name)
                            || fleet.placement(name).isPresent());
    return isReady ? bundle : List.of();
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
      Reservation held = reservation;
      placed =
          trial.place(
              members,
              terms.closeness(),
              mayUseAll || held == null ? ANY : node -> !held.nodes().contains(node));
      if (placed.isEmpty()) {
        refused.add(key);
      }
    }
    if (placed.isEmpty()
        && isFirst
        && mayEvict
        && terms.preemptionClass().isMoreUrgentThan(PreemptionClass.OFFLINE)) {
      placed = evict(gang, members, decisions);
    }
    placed.ifPresent(list -> start(bundle, list, nowS, decisions));
    return placed.isPresent();
  }

  /** {@return whether it cannot delay whom a place is held for} */
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
      waiting.remove(gang);
      running.put(gang.name(), gang);
      decisions.add(new Decision.Start(gang.name(), own));
      if (reservation != null && reservation.gang().equals(gang.name())) {
        reservation = null;
        refused.clear();
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
    refused.clear();
    return Optional.of(eviction.get().placed());
  }

  /** Holds a place for the first that does not fit; what is held for it already stays. */
  private void hold(Gang gang, List<Gang> bundle) {
    if (reservation == null || !reservation.gang().equals(gang.name())) {
      reservation =
          planner
              .reserve(gang.name(), members(bundle), gang.terms(), running.values())
              .orElse(null);
      refused.clear();
    }
  }
}
