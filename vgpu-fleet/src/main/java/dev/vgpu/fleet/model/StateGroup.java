package dev.vgpu.fleet.model;

import java.util.Arrays;
import java.util.function.IntPredicate;

/** The nodes that have the same state, in order. Changed only by its {@link StateTable}. */
public final class StateGroup {
  private final NodeState state;
  private int id;
  private int[] nodes = new int[1];
  private int size;
  private int position;

  StateGroup(NodeState state, int id) {
    this.state = state;
    this.id = id;
  }

  /** {@return the state} */
  public NodeState state() {
    return state;
  }

  /**
   * {@return a small number, unique among the states of the table until {@link Fleet#era} changes}
   */
  public int id() {
    return id;
  }

  /** {@return the number of nodes in this state} */
  public int size() {
    return size;
  }

  /**
   * {@return the first allowed node in this state; -1 if there is none}
   *
   * @param allowed whether the node with a number may be used
   */
  public int firstNode(IntPredicate allowed) {
    for (int i = 0; i < size; i++) {
      if (allowed.test(nodes[i])) {
        return nodes[i];
      }
    }
    return -1;
  }

  void renumber(int newId) {
    id = newId;
  }

  int position() {
    return position;
  }

  void moveTo(int newPosition) {
    position = newPosition;
  }

  void add(int node) {
    if (size == nodes.length) {
      nodes = Arrays.copyOf(nodes, 2 * size);
    }
    int at = -1 - Arrays.binarySearch(nodes, 0, size, node);
    System.arraycopy(nodes, at, nodes, at + 1, size - at);
    nodes[at] = node;
    size++;
  }

  void remove(int node) {
    int at = Arrays.binarySearch(nodes, 0, size, node);
    System.arraycopy(nodes, at + 1, nodes, at, size - at - 1);
    size--;
  }
}
