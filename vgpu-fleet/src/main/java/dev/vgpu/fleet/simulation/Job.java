package dev.vgpu.fleet.simulation;

import dev.vgpu.fleet.model.Request;
import java.util.List;

/**
 * Requests that arrive and run together. Immutable.
 *
 * @param name its name
 * @param members one request, or the members of a gang
 * @param arrivalS its arrival, in seconds
 * @param runS its running time once it is placed, in seconds
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
