package dev.vgpu.fleet.model;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiConsumer;

/**
 * The nodes and all placements; the one owner of that state. {@link #place} and {@link #release}
 * restore capacity exactly. A trial placement is taken back with {@link #undo}, which also restores
 * the counters. All of them touch one node. Confined to one thread.
 */
public final class Fleet {
  private final List<NodeSpec> specs;
  private final NodeKind[] kinds;
  private final long[][] words;
  private final int[] cpu;
  private final int[] host;
  private final StateGroup[] groups;
  private final StateTable table = new StateTable();
  private final Map<String, Placement> placements = new HashMap<>();
  private final List<List<Placement>> byNode = new ArrayList<>();
  private final List<BiConsumer<StateGroup, StateGroup>> listeners = new ArrayList<>();

  /** By group: its nodes, with the number of its members on each. */
  private final Map<String, Map<Integer, Integer>> spreads = new HashMap<>();

  private final long capacityPercent;
  private long idlePercent;
  private long placedCount;
  private long releasedCount;

  /**
   * Creates an empty fleet.
   *
   * @param specs its nodes; scored policies take the first of equally good nodes
   */
  public Fleet(List<NodeSpec> specs) {
    this.specs = List.copyOf(specs);
    int count = specs.size();
    kinds = new NodeKind[count];
    words = new long[count][];
    cpu = new int[count];
    host = new int[count];
    groups = new StateGroup[count];
    Map<NodeKind, NodeKind> known = new HashMap<>();
    for (int i = 0; i < count; i++) {
      NodeSpec spec = specs.get(i);
      byNode.add(new ArrayList<>(2));
      kinds[i] = known.computeIfAbsent(NodeKind.of(spec), kind -> kind);
      words[i] = new long[spec.gpus()];
      Arrays.fill(words[i], kinds[i].untouched());
      cpu[i] = spec.cpuMillis();
      host[i] = NodeKind.mebibytes(spec.hostMemory().bytes());
      NodeState state = new NodeState(kinds[i], words[i].clone(), cpu[i], host[i]);
      groups[i] = table.add(state, i);
      idlePercent += state.idlePercent();
    }
    capacityPercent = idlePercent;
  }

  /** {@return its nodes; a node's number is its index} */
  public List<NodeSpec> nodes() {
    return specs;
  }

  /**
   * {@return what is free on a node}
   *
   * @param node its number
   */
  public NodeState state(int node) {
    return groups[node].state();
  }

  /**
   * {@return the group of nodes with the same state as a node}
   *
   * @param node its number
   */
  public StateGroup group(int node) {
    return groups[node];
  }

  /** {@return the distinct states of all nodes, in no particular order} */
  public List<StateGroup> groups() {
    return table.live();
  }

  /** {@return the numbers of {@link #groups}, in the same order; the array may be longer} */
  public int[] groupIds() {
    return table.liveIds();
  }

  /**
   * Adds a listener for every change of a node's state.
   *
   * @param listener receives the states before and after
   */
  public void listen(BiConsumer<StateGroup, StateGroup> listener) {
    listeners.add(listener);
  }

  /** {@return a number that changes when states are renumbered} */
  public int era() {
    return table.era();
  }

  /** {@return the capacity of all GPUs, in percent of one GPU} */
  public long capacityPercent() {
    return capacityPercent;
  }

  /** {@return the free online and nearline shares, in percent of one GPU} */
  public long idlePercent() {
    return idlePercent;
  }

  /** {@return the number of placements so far, without those undone} */
  public long placedCount() {
    return placedCount;
  }

  /** {@return the number of releases so far} */
  public long releasedCount() {
    return releasedCount;
  }

  /** {@return all placements, by the names of their requests} */
  public Map<String, Placement> placements() {
    return Collections.unmodifiableMap(placements);
  }

  /**
   * {@return the placement of a request}
   *
   * @param name the request's name
   */
  public Optional<Placement> placement(String name) {
    return Optional.ofNullable(placements.get(name));
  }

  /**
   * {@return the nodes that hold members of a group}
   *
   * @param group see {@link Request#spread()}
   */
  public Set<Integer> nodesOf(String group) {
    return Collections.unmodifiableSet(spreads.getOrDefault(group, Map.of()).keySet());
  }

  /**
   * Places a request.
   *
   * @param request a request that is not placed yet
   * @param spot where it fits
   * @return the placement, to be released later
   * @throws IllegalArgumentException if it does not fit there, or its name is placed already
   */
  public Placement place(Request request, Spot spot) {
    Shape shape = request.shape();
    int node = spot.node();
    NodeState before = groups[node].state();
    if (placements.containsKey(request.name())) {
      throw new IllegalArgumentException("already placed: " + request.name());
    }
    if (!before.fits(shape)) {
      throw new IllegalArgumentException(
          "does not fit: request=" + request + " node=" + specs.get(node).name());
    }
    long[] taken = shape.gpus() == 0 ? new long[0] : before.taken(shape, spot.slot());
    List<Integer> gpus = GpuPick.pick(words[node], taken, specs.get(node).gpuGroups());
    int start = 0;
    if (shape.isMig()) {
      Integer best = before.migStart(spot.slot(), shape);
      if (best == null) {
        throw new IllegalArgumentException("no place for the instance: " + request);
      }
      start = best;
    }
    Placement placement = new Placement(request, node, gpus, start);
    add(placement);
    return placement;
  }

  /**
   * Removes the placement of a request that has ended.
   *
   * @param placement a placement from {@link #place}
   * @throws IllegalArgumentException if it is not placed
   */
  public void release(Placement placement) {
    remove(placement);
    releasedCount++;
  }

  /**
   * Takes back a trial placement. Afterwards everything is as it was before it.
   *
   * @param placement a placement from {@link #place}
   * @throws IllegalArgumentException if it is not placed
   */
  public void undo(Placement placement) {
    remove(placement);
    placedCount--;
  }

  /**
   * Adds a placement that exists already, as reported by the caller.
   *
   * @param placement the placement, which is checked
   * @throws IllegalArgumentException if the node has no such GPUs or MIG instance, the number of
   *     GPUs differs from the request's, the name is placed already, or it does not fit there
   */
  public void adopt(Placement placement) {
    Request request = placement.request();
    int node = placement.node();
    if (node < 0 || node >= specs.size() || placements.containsKey(request.name())) {
      throw new IllegalArgumentException(
          "no such node, or placed already: request=" + request.name() + " node=" + node);
    }
    NodeSpec spec = specs.get(node);
    List<Integer> gpus = placement.gpus();
    Shape shape = request.shape();
    boolean isKnown =
        gpus.stream().allMatch(gpu -> gpu >= 0 && gpu < spec.gpus())
            && gpus.stream().distinct().count() == shape.gpus()
            && gpus.size() == shape.gpus()
            && (shape.gpus() == 0
                || (shape.takes(spec.gpuModel()) && shape.isMig() == kinds[node].isMig()))
            && (!shape.isMig()
                || kinds[node]
                    .cut(shape.migProfile())
                    .filter(cut -> cut.starts().contains(placement.migStart()))
                    .filter(cut -> shape.memoryMebibytes() <= kinds[node].mebibytesOf(cut))
                    .isPresent());
    if (!isKnown || !hasRoom(placement)) {
      throw new IllegalArgumentException(
          "no room for it there: request=" + request + " node=" + spec.name() + " gpus=" + gpus);
    }
    add(placement);
  }

  /**
   * Adds a placement again that {@link #undo} has removed, on the same GPUs, if they still have
   * room.
   *
   * @param placement the removed placement
   * @return whether it is placed again
   */
  public boolean restore(Placement placement) {
    if (!hasRoom(placement)) {
      return false;
    }
    add(placement);
    return true;
  }

  private boolean hasRoom(Placement placement) {
    int node = placement.node();
    Shape shape = placement.request().shape();
    boolean fits = cpu[node] >= shape.cpuMillis() && host[node] >= shape.hostMebibytes();
    for (int gpu : placement.gpus()) {
      long word = words[node][gpu];
      if (shape.isMig()) {
        int mask = kinds[node].cut(shape.migProfile()).orElseThrow().mask(placement.migStart());
        fits &= (GpuWord.slices(word) & mask) == 0;
      } else {
        fits &= GpuWord.fits(word, shape, kinds[node].untouched());
      }
    }
    return fits;
  }

  private void add(Placement placement) {
    Request request = placement.request();
    int node = placement.node();
    change(placement, 1);
    placements.put(request.name(), placement);
    placedCount++;
    byNode.get(node).add(placement);
    if (!request.spread().isEmpty()) {
      // Members that were running already may share a node.
      spreads
          .computeIfAbsent(request.spread(), key -> new LinkedHashMap<>())
          .merge(node, 1, Integer::sum);
    }
  }

  private void remove(Placement placement) {
    Request request = placement.request();
    if (!placements.remove(request.name(), placement)) {
      throw new IllegalArgumentException("not placed: " + request.name());
    }
    byNode.get(placement.node()).remove(placement);
    change(placement, -1);
    spreads.computeIfPresent(
        request.spread(),
        (group, nodes) -> {
          nodes.computeIfPresent(placement.node(), (node, count) -> count > 1 ? count - 1 : null);
          return nodes.isEmpty() ? null : nodes;
        });
  }

  private void change(Placement placement, int sign) {
    int node = placement.node();
    Shape shape = placement.request().shape();
    NodeKind kind = kinds[node];
    for (int gpu : placement.gpus()) {
      long word = words[node][gpu];
      if (shape.isMig()) {
        int mask = kind.cut(shape.migProfile()).orElseThrow().mask(placement.migStart());
        int slices = GpuWord.slices(word);
        int left = sign > 0 ? slices | mask : slices & ~mask;
        words[node][gpu] = GpuWord.cut(word, left, kind.allSlices());
      } else {
        words[node][gpu] =
            sign > 0
                ? GpuWord.take(word, shape, kind.untouched())
                : GpuWord.give(word, shape, kind.untouched());
      }
    }
    cpu[node] -= sign * shape.cpuMillis();
    host[node] -= sign * shape.hostMebibytes();
    regroup(node);
  }

  private void regroup(int node) {
    StateGroup before = groups[node];
    long[] sorted = words[node].clone();
    Arrays.sort(sorted);
    NodeState after = new NodeState(kinds[node], sorted, cpu[node], host[node]);
    if (after.equals(before.state())) {
      return; // a request may need nothing of the node
    }
    // Add before removing, so that a state that reappears at once keeps its number.
    StateGroup group = table.add(after, node);
    table.remove(before, node);
    groups[node] = group;
    listeners.forEach(listener -> listener.accept(before, group));
    idlePercent += after.idlePercent() - before.state().idlePercent();
  }

  /**
   * {@return the placements on a node, in no particular order}
   *
   * @param node the node's number
   */
  public List<Placement> on(int node) {
    return List.copyOf(byNode.get(node));
  }
}
