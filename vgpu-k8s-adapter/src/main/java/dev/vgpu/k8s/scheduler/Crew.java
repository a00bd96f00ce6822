package dev.vgpu.k8s.scheduler;

import dev.vgpu.fleet.gang.Terms;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/**
 * The pods of a gang on their way to their nodes; a single pod is a crew of one. None is bound
 * before all have a place, all places are written down, all have been asked to be bound, and all
 * that had to go for them are gone. Written by its {@link PodLine} alone.
 */
final class Crew {
  private final Terms terms;
  final Set<String> members = new LinkedHashSet<>();
  final Set<String> written = new HashSet<>();
  final Set<String> arrived = new HashSet<>();
  final Set<String> inTheWay = new HashSet<>();
  boolean isPlaced;
  boolean isGoing;

  /** Whether its pods were told to end for others; they hold their places until they have. */
  boolean isLeaving;

  /** Whether some of its pods run and count by themselves now. */
  boolean isBroken;

  /** Ends when all may be bound: with an empty text, or with why they may not. */
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

  /** All wait again; whoever waits to be bound is told why. */
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
