package dev.vgpu.fleet.gang;

import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.Request;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/** A waiting or running gang. Changed only by its {@link FleetQueue}. */
final class Gang {
  /** By class, then by arrival. */
  static final Comparator<Gang> ORDER =
      Comparator.comparing((Gang gang) -> gang.terms.preemptionClass())
          .thenComparingLong(gang -> gang.number);

  private final Terms terms;
  private final long number;
  private final List<Request> members = new ArrayList<>();
  private List<Placement> placements = List.of();
  private double endS;

  Gang(Terms terms, long number) {
    this.terms = terms;
    this.number = number;
  }

  Terms terms() {
    return terms;
  }

  String name() {
    return terms.name();
  }

  /** {@return its number in the order of arrival} */
  long number() {
    return number;
  }

  List<Request> members() {
    return members;
  }

  boolean isComplete() {
    return members.size() == terms.size();
  }

  List<Placement> placements() {
    return placements;
  }

  /** {@return its expected end, in seconds} */
  double endS() {
    return endS;
  }

  void start(List<Placement> where, double nowS) {
    placements = List.copyOf(where);
    endS = nowS + terms.runS();
  }

  void stop() {
    placements = List.of();
  }

  /** {@return the placement of a member that leaves; empty if it had none} */
  Optional<Placement> leave(String member) {
    Optional<Placement> left =
        placements.stream().filter(one -> one.request().name().equals(member)).findFirst();
    placements = placements.stream().filter(one -> !one.request().name().equals(member)).toList();
    return left;
  }

  /** {@return whether a member must share the node of another request} */
  boolean isDependent() {
    return members.stream().anyMatch(member -> !member.sameNodeAs().isEmpty());
  }

  /** {@return whether a member must share the node of a member of the other gang} */
  boolean dependsOn(Gang other) {
    return members.stream()
        .anyMatch(
            member ->
                other.members.stream().anyMatch(one -> one.name().equals(member.sameNodeAs())));
  }
}
