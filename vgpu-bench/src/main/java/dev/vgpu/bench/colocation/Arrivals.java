package dev.vgpu.bench.colocation;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Requests that are replayed together. Immutable.
 *
 * @param requests in the order of their arrival
 * @param lengthNs the period in which they arrive
 */
record Arrivals(List<Request> requests, long lengthNs) {
  /** Copies the list. */
  Arrivals {
    requests = List.copyOf(requests);
  }

  /**
   * {@return as many requests of a trace as keep the GPU busy for a part of the time, sped up or
   * slowed down to fit}
   *
   * @param trace the trace's requests; repeated from the start if they do not suffice
   * @param load the part of the time, above 0 and below 1
   * @param lengthNs how long the replay takes
   */
  static Arrivals of(List<Request> trace, double load, long lengthNs) {
    double budgetNs = load * lengthNs;
    List<Request> taken = new ArrayList<>();
    long traceNs = 1;
    for (int i = 0; budgetNs > 0; i++) {
      Request next = trace.get(i % trace.size());
      traceNs = spanNs(trace, i + 1) + 1;
      taken.add(new Request(traceNs - 1, next.prefillNs(), next.decodeNs()));
      budgetNs -= next.serviceNs();
    }
    double scale = lengthNs / (double) traceNs;
    return new Arrivals(
        taken.stream()
            .map(r -> new Request((long) (r.dueNs() * scale), r.prefillNs(), r.decodeNs()))
            .toList(),
        lengthNs);
  }

  /**
   * {@return the period in which the first requests of a trace arrived, in nanoseconds}
   *
   * @param trace the trace's requests; repeated from the start if they do not suffice
   * @param count how many requests, at least 1
   */
  static long spanNs(List<Request> trace, int count) {
    int last = count - 1;
    long wholeNs = trace.get(trace.size() - 1).dueNs();
    return last / trace.size() * wholeNs + trace.get(last % trace.size()).dueNs();
  }

  /** {@return requests of equal length at random moments, the same in each call} */
  static Arrivals random(long serviceNs, int perSecond, long lengthNs) {
    List<Request> requests = new ArrayList<>();
    Random random = new Random(1);
    double dueNs = 0;
    while (dueNs < lengthNs) {
      requests.add(new Request((long) dueNs, serviceNs, 0));
      dueNs += -Math.log(1 - random.nextDouble()) * 1e9 / perSecond;
    }
    return new Arrivals(requests, lengthNs);
  }

  /** {@return one of several parts of equal length} */
  Arrivals part(int index, int count) {
    long fromNs = lengthNs * index / count;
    long toNs = lengthNs * (index + 1) / count;
    return new Arrivals(
        requests.stream()
            .filter(r -> r.dueNs() >= fromNs && r.dueNs() < toNs)
            .map(r -> new Request(r.dueNs() - fromNs, r.prefillNs(), r.decodeNs()))
            .toList(),
        toNs - fromNs);
  }

  /** {@return the GPU time of all requests} */
  long serviceNs() {
    return requests.stream().mapToLong(Request::serviceNs).sum();
  }

  /** Writes the requests to a file for the online program. */
  void write(Path file) {
    try (BufferedWriter writer = Files.newBufferedWriter(file, UTF_8)) {
      for (Request request : requests) {
        writer.write(request.dueNs() + " " + request.prefillNs() + " " + request.decodeNs() + "\n");
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + file, e);
    }
  }
}
