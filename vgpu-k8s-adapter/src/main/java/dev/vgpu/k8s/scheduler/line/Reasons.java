package dev.vgpu.k8s.scheduler.line;

import dev.vgpu.fleet.gang.Reservation;
import java.util.List;
import java.util.Optional;

/** Says why pods wait. Confined to its {@link PodLine}. */
final class Reasons {
  private final Roll roll;
  private final SharedNodes shared;

  Reasons(Roll roll, SharedNodes shared) {
    this.roll = roll;
    this.shared = shared;
  }

  /** {@return why a crew has no place} */
  String of(Crew crew) {
    String name = crew.isGang() ? "gang " + crew.name() : "pod";
    if (crew.members.size() < crew.terms().size()) {
      return name
          + " waits: "
          + crew.members.size()
          + " of "
          + crew.terms().size()
          + " members are here";
    }
    Optional<String> obstacle = roll.view.queue().obstacle(crew.name());
    Optional<String> missing = shared.missing(crew);
    if (missing.isPresent()) {
      return name + " waits: " + missing.get();
    }
    String limits = shared.limits(crew);
    if (obstacle.isPresent()) {
      return name + " waits for other nodes: it " + obstacle.get() + limits;
    }
    List<String> waiting = roll.view.queue().waiting();
    Optional<Reservation> held = roll.view.queue().reservation();
    String place =
        held.map(
                one ->
                    one.gang().equals(crew.name())
                        ? "; a place is held for it on " + one.nodes().size() + " nodes"
                        : "; a place is held for " + label(one.gang()))
            .orElse("");
    return name
        + " waits: no room now, "
        + waiting.indexOf(crew.name())
        + " before it"
        + place
        + limits;
  }

  /** {@return the name of a crew, or of the pod that is one} */
  String label(String crewName) {
    Entry entry = roll.entries.get(crewName);
    return entry == null ? crewName : entry.fullName();
  }
}
