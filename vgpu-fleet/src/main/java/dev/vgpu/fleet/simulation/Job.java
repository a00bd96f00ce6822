package dev.vgpu.fleet.simulation;

import dev.vgpu.fleet.model.Request;
import java.util.List;

/**
 * Requests that come together and run together. Immutable.
 *
 * @param name its name
 * @param members one request, or the members of a gang
 * @param arrivalS when it comes, in seconds
 * @param runS how long it runs once it is placed, in seconds
 */
public record Job(String name, List<Request> members, double arrivalS, double runS) {
  /** Copies the list. */
  public Job {
    members = List.copyOf(members);
  }

  /** {@return whether it has several members} */
  public boolean isGang() {
    return members.size() > 1;
  }
}
