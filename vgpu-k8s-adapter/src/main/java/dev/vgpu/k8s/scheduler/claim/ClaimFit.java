package dev.vgpu.k8s.scheduler.claim;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Whether requests may get devices. They may not only if it is sure: for one request there is too
 * little room on any node, for each kind of request in the cluster, or all together ask more than
 * is free. What a change of one pool makes of it costs as much as that pool has GPUs.
 *
 * <p>It reads the GPUs of a {@link ClaimTrial}, which must not change meanwhile. Otherwise
 * immutable.
 */
final class ClaimFit {
  private final Map<String, Pool> pools = new HashMap<>();

  /** The requests, each kind once. */
  private final List<ClaimNeed> needs;

  /** How many parts are asked that are like those of each request. */
  private final long[] wanted;

  private final long wantedShare;
  private final long wantedMemory;
  private final Room all;

  /** How many parts of each request the pool with the most room for it has room for. */
  private final long[] most;

  /** The same for the pool that comes second. */
  private final long[] next;

  private final boolean isPossible;

  /** The GPUs of a pool, and what is free of them. */
  private record Pool(List<ClaimGpu> gpus, Room room) {}

  /** What is free of some GPUs. */
  private final class Room {
    /** How many parts of each request fit, if these are all the GPUs there are. */
    final long[] parts = new long[needs.size()];

    /** How many parts like those of each request fit, whether they must be apart or not. */
    final long[] alike = new long[needs.size()];

    long share;
    long memory;

    /**
     * It becomes what is free of these GPUs after requests have got each of them. There are no
     * iterators: a question about thousands of GPUs would make one for each.
     */
    void become(List<ClaimGpu> gpus, List<ClaimNeed> taken) {
      Arrays.fill(parts, 0);
      Arrays.fill(alike, 0);
      share = 0;
      memory = 0;
      for (int i = 0; i < gpus.size(); i++) {
        add(gpus.get(i), taken);
      }
    }

    private void add(ClaimGpu gpu, List<ClaimNeed> taken) {
      long freeShare = gpu.share;
      long freeMemory = gpu.memory;
      for (int i = 0; i < taken.size(); i++) {
        ClaimNeed each = taken.get(i);
        freeShare -= each.partsOfOne() * each.ask().share();
        freeMemory -= each.partsOfOne() * gpu.of(each.ask().memory());
      }
      share += Math.max(0, freeShare);
      memory += Math.max(0, freeMemory);
      for (int i = 0; i < parts.length; i++) {
        long room = gpu.room(needs.get(i).ask(), freeShare, freeMemory);
        alike[i] += room;
        parts[i] += needs.get(i).isApart() ? Math.min(1, room) : room;
      }
    }
  }

  /**
   * Creates it.
   *
   * @param pools the GPUs of each pool, by name
   * @param asked the requests
   */
  ClaimFit(Map<String, Map<String, ClaimGpu>> pools, List<ClaimNeed> asked) {
    needs = asked.stream().distinct().toList();
    Map<ClaimNeed.Ask, Long> counts = new LinkedHashMap<>();
    asked.forEach(need -> counts.merge(need.ask(), need.count(), Long::sum));
    wanted = needs.stream().mapToLong(need -> counts.get(need.ask())).toArray();
    wantedShare = asked.stream().mapToLong(need -> need.count() * need.ask().share()).sum();
    wantedMemory =
        asked.stream().mapToLong(need -> need.count() * need.ask().memory().orElse(0)).sum();
    all = new Room();
    most = new long[needs.size()];
    next = new long[needs.size()];
    pools.forEach((name, gpus) -> add(name, List.copyOf(gpus.values())));
    isPossible = isPossible(new Room(), new Room());
  }

  private void add(String name, List<ClaimGpu> gpus) {
    Room room = new Room();
    room.become(gpus, List.of());
    pools.put(name, new Pool(gpus, room));
    all.share += room.share;
    all.memory += room.memory;
    for (int i = 0; i < most.length; i++) {
      all.alike[i] += room.alike[i];
      next[i] = Math.max(next[i], Math.min(most[i], room.parts[i]));
      most[i] = Math.max(most[i], room.parts[i]);
    }
  }

  /** {@return whether all the requests may get devices} */
  boolean isPossible() {
    return isPossible;
  }

  /**
   * {@return of some pools, those of which other requests may get no devices: all the requests may
   * not get theirs then, whichever devices of the pool these are}
   */
  List<String> impossibleBeside(List<ClaimNeed> others, Collection<String> names) {
    List<String> found = new ArrayList<>();
    Room after = new Room();
    for (String name : names) {
      Pool pool = pools.get(name);
      if (pool != null) {
        after.become(pool.gpus, others);
      }
      if (pool == null ? !isPossible : !isPossible(pool.room, after)) {
        found.add(name);
      }
    }
    return found;
  }

  /** A pool has another room than it had. */
  private boolean isPossible(Room before, Room after) {
    for (int i = 0; i < most.length; i++) {
      long elsewhere = before.parts[i] == most[i] ? next[i] : most[i];
      if (Math.max(elsewhere, after.parts[i]) < needs.get(i).count()
          || all.alike[i] - before.alike[i] + after.alike[i] < wanted[i]) {
        return false;
      }
    }
    return all.share - before.share + after.share >= wantedShare
        && all.memory - before.memory + after.memory >= wantedMemory;
  }
}
