package dev.vgpu.k8s.scheduler.line;

import dev.vgpu.fleet.gang.Terms;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/**
 * The pods of a gang on their way to their nodes; a single pod is a crew of one. All pods must have
 * a place before any is bound, and all places must be recorded. The cluster's scheduler must have
 * asked to bind all of them, and all pods evicted for them must be gone. Modified by its {@link
 * PodLine} only.
 */
final class Crew {
  private final Terms terms;
  final Set<String> members = new LinkedHashSet<>();
  final Set<String> written = new HashSet<>();
  final Set<String> arrived = new HashSet<>();
  final Set<String> inTheWay = new HashSet<>();
  boolean isPlaced;
  boolean isGoing;

  /** The members whose bindings are being written. */
  final Set<String> binding = new HashSet<>();

  /** The members that may be bound: their bindings were written, or nobody knows. */
  final Set<String> maybeBound = new HashSet<>();

  /** How many writes of bindings have begun. */
  int bindings;

  /** When one of its pods was asked about last, or woken. */
  double askedS;

  /** Whether its pods are being evicted; they hold their places until they have ended. */
  boolean isLeaving;

  /** Whether some of its pods run, and are counted individually now. */
  boolean isBroken;

  /** Completes when all may be bound, with an empty text, or with the reason why they may not. */
  CompletableFuture<String> go = new CompletableFuture<>();

  Crew(Terms terms) {
    this.terms = terms;
  }

  Terms terms() {
    return terms;
  }

  String name() {
    return terms.name();
  }

  boolean isGang() {
    return terms.size() > 1;
  }

  boolean mayGo() {
    return isPlaced
        && inTheWay.isEmpty()
        && (isGoing
            || (members.size() == terms.size()
                && arrived.containsAll(members)
                && (!isGang() || written.containsAll(members))));
  }

  /** {@return whether it has places, and only waits for the first of its pods to come} */
  boolean isUnclaimed() {
    return isPlaced && !isGoing && arrived.isEmpty() && inTheWay.isEmpty();
  }

  /** No member is bound: all keep their places, and come to be bound again. */
  void stop() {
    isGoing = false;
    maybeBound.clear();
    arrived.clear();
    go = new CompletableFuture<>();
  }

  /** Makes all pods wait again, and tells pods that wait to be bound the reason. */
  void back(String reason) {
    isPlaced = false;
    written.clear();
    arrived.clear();
    inTheWay.clear();
    CompletableFuture<String> old = go;
    go = new CompletableFuture<>();
    old.complete(reason);
  }
}
