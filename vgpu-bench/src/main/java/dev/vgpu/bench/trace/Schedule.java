package dev.vgpu.bench.trace;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Requests to send, in the order of their arrival, and the length of the schedule. Immutable.
 *
 * @param requests in any order; arrivals within the length
 * @param lengthNs the length in nanoseconds; above 0
 */
public record Schedule(List<ScheduledRequest> requests, long lengthNs) {
  /**
   * Sorts the requests.
   *
   * @throws IllegalArgumentException if an arrival is not within the length
   */
  public Schedule {
    requests =
        requests.stream().sorted(Comparator.comparingLong(ScheduledRequest::arrivalNs)).toList();
    for (ScheduledRequest request : requests) {
      if (request.arrivalNs() < 0 || request.arrivalNs() >= lengthNs) {
        throw new IllegalArgumentException(
            "an arrival is not within the schedule: arrivalNs="
                + request.arrivalNs()
                + " lengthNs="
                + lengthNs);
      }
    }
  }

  /**
   * Cuts the schedule into parts of equal length.
   *
   * @param count how many; above 0
   * @return the parts, each with arrivals since its own start
   */
  public List<Schedule> slices(int count) {
    List<Schedule> slices = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      slices.add(part(lengthNs * i / count, lengthNs * (i + 1) / count));
    }
    return slices;
  }

  private Schedule part(long fromNs, long toNs) {
    return new Schedule(
        requests.stream()
            .filter(request -> request.arrivalNs() >= fromNs && request.arrivalNs() < toNs)
            .map(
                request ->
                    new ScheduledRequest(
                        request.arrivalNs() - fromNs, request.path(), request.texts()))
            .toList(),
        toNs - fromNs);
  }
}
