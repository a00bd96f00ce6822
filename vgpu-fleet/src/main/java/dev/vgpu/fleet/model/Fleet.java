package dev.vgpu.fleet.model;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiConsumer;

/**
 * The nodes and what is placed on them: the one owner of that state. {@link #place} and {@link
 * #release} are exact inverses, so a trial is undone by releasing what it placed. Both touch one
 * node. Confined to one thread.
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
  private final Map<String, Set<Integer>> spreads = new HashMap<>();
  private final long capacityPercent;
  private long idlePercent;
  private long placedCount;
  private long releasedCount;

  /**
   * Makes a fleet on which nothing is placed.
   *
   * @param specs its nodes; of equally good ones the first is taken
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

  /** {@return its nodes; a node's number is its place here} */
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
   * {@return the state of a node, with its number}
   *
   * @param node its number
   */
  public StateGroup group(int node) {
    return groups[node];
  }

  /** {@return the distinct states in which nodes are now, in no particular order} */
  public List<StateGroup> groups() {
    return table.live();
  }

  /** {@return the numbers of {@link #groups}, in the same order; the array may be longer} */
  public int[] groupIds() {
    return table.liveIds();
  }

  /**
   * Tells somebody of every change of a node's state from now on.
   *
   * @param listener is given the states before and after
   */
  public void listen(BiConsumer<StateGroup, StateGroup> listener) {
    listeners.add(listener);
  }

  /** {@return a number that changes when states get other numbers} */
  public int era() {
    return table.era();
  }

  /** {@return all GPUs, in percent of one} */
  public long capacityPercent() {
    return capacityPercent;
  }

  /** {@return free online and nearline shares, in percent of one GPU} */
  public long idlePercent() {
    return idlePercent;
  }

  /** {@return how often something was placed so far, without what was undone} */
  public long placedCount() {
    return placedCount;
  }

  /** {@return how often something that had been placed ended} */
  public long releasedCount() {
    return releasedCount;
  }

  /** {@return what is placed, by its request's name} */
  public Map<String, Placement> placements() {
    return Collections.unmodifiableMap(placements);
  }

  /**
   * {@return where a request is placed}
   *
   * @param name the request's name
   */
  public Optional<Placement> placement(String name) {
    return Optional.ofNullable(placements.get(name));
  }

  /**
   * {@return the nodes on which members of a group are}
   *
   * @param group see {@link Request#spread()}
   */
  public Set<Integer> nodesOf(String group) {
    return spreads.getOrDefault(group, Set.of());
  }

  /**
   * Places a request.
   *
   * @param request what is not placed yet
   * @param spot where it fits
   * @return what was placed, to be released later
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
   * Takes a request that has ended off its node.
   *
   * @param placement what {@link #place} returned
   * @throws IllegalArgumentException if that is not placed
   */
  public void release(Placement placement) {
    remove(placement);
    releasedCount++;
  }

  /**
   * Takes back a placement that was only tried: afterwards all is as it was before it.
   *
   * @param placement what {@link #place} returned
   * @throws IllegalArgumentException if that is not placed
   */
  public void undo(Placement placement) {
    remove(placement);
    placedCount--;
  }

  /**
   * Places what is known to run on certain GPUs, as somebody else reports it.
   *
   * @param placement where it is; nothing of it is trusted
   * @throws IllegalArgumentException if the node does not have such GPUs, the request is not for so
   *     many, its name is placed already, or it does not fit there
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
                    .isPresent());
    if (!isKnown || !hasRoom(placement)) {
      throw new IllegalArgumentException(
          "no room for it there: request=" + request + " node=" + spec.name() + " gpus=" + gpus);
    }
    add(placement);
  }

  /**
   * Puts back what {@link #undo} took, on the very same GPUs, if they still have room for it.
   *
   * @param placement what was undone
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
      spreads.computeIfAbsent(request.spread(), key -> new LinkedHashSet<>()).add(node);
    }
  }

  private void remove(Placement placement) {
    Request request = placement.request();
    if (!placements.remove(request.name(), placement)) {
      throw new IllegalArgumentException("not placed: " + request.name());
    }
    byNode.get(placement.node()).remove(placement);
    change(placement, -1);
    Set<Integer> spread = spreads.get(request.spread());
    if (spread != null) {
      spread.remove(placement.node());
      if (spread.isEmpty()) {
        spreads.remove(request.spread());
      }
    }
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
      return; // a request may ask for nothing of the node
    }
    // Added first: a state that comes back at once keeps what is known of it.
    StateGroup group = table.add(after, node);
    table.remove(before, node);
    groups[node] = group;
    listeners.forEach(listener -> listener.accept(before, group));
    idlePercent += after.idlePercent() - before.state().idlePercent();
  }

  /**
   * {@return what is placed on a node, in no particular order}
   *
   * @param node the node's number
   */
  public List<Placement> on(int node) {
    return List.copyOf(byNode.get(node));
  }
}
