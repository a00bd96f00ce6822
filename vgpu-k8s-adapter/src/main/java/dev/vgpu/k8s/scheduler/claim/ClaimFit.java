package dev.vgpu.k8s.scheduler.claim;

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
  private final Map<String, Collection<ClaimGpu>> pools;

  /** The requests, each kind once. */
  private final List<ClaimNeed> needs;

  /** How many parts are asked that are like those of each request. */
  private final long[] wanted;

  private final long wantedShare;
  private final long wantedMemory;
  private final Map<String, Room> rooms = new HashMap<>();
  private final Room all;

  /** How many parts of each request the pool with the most room for it has room for. */
  private final long[] most;

  /** The same for the pool that comes second. */
  private final long[] next;

  /** What is free of some GPUs. */
  private final class Room {
    /** How many parts of each request fit, if these are all the GPUs there are. */
    final long[] parts = new long[needs.size()];

    /** How many parts like those of each request fit, whether they must be apart or not. */
    final long[] alike = new long[needs.size()];

    long share;
    long memory;

    void add(ClaimGpu gpu, List<ClaimNeed> taken) {
      long freeShare = gpu.share;
      long freeMemory = gpu.memory;
      for (ClaimNeed each : taken) {
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
   * @param pools the GPUs of each pool
   * @param asked the requests
   */
  ClaimFit(Map<String, Collection<ClaimGpu>> pools, List<ClaimNeed> asked) {
    this.pools = pools;
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
    pools.forEach(this::add);
  }

  private void add(String pool, Collection<ClaimGpu> gpus) {
    Room room = room(gpus, List.of());
    rooms.put(pool, room);
    all.share += room.share;
    all.memory += room.memory;
    for (int i = 0; i < most.length; i++) {
      all.alike[i] += room.alike[i];
      next[i] = Math.max(next[i], Math.min(most[i], room.parts[i]));
      most[i] = Math.max(most[i], room.parts[i]);
    }
  }

  private Room room(Collection<ClaimGpu> gpus, List<ClaimNeed> taken) {
    Room room = new Room();
    gpus.forEach(gpu -> room.add(gpu, taken));
    return room;
  }

  /** {@return whether all the requests may get devices} */
  boolean isPossible() {
    return isPossible(new Room(), new Room());
  }

  /**
   * {@return whether they may after other requests have got devices of a pool, whichever these are}
   */
  boolean isPossibleBeside(List<ClaimNeed> others, String pool) {
    Room before = rooms.get(pool);
    return before == null
        ? isPossible()
        : isPossible(before, room(pools.getOrDefault(pool, List.of()), others));
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
