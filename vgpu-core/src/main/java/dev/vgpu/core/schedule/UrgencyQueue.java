package dev.vgpu.core.schedule;

import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * A queue in order of class, then arrival, in which no element is overtaken forever. After the
 * first element of a class was overtaken {@value #MOST_OVERTAKES} times by later arrivals of more
 * urgent classes, it is not overtaken again. Every operation takes constant time unless it says
 * otherwise. Not safe for use by several threads: guarded by its owner.
 *
 * @param <E> the type of the elements
 */
public final class UrgencyQueue<E extends UrgencyQueue.Node<E>> {
  /** How often the first element of a class is overtaken at most. */
  public static final int MOST_OVERTAKES = 64;

  /**
   * An element. It holds its own links, so it is in at most one queue.
   *
   * @param <E> the element's type
   */
  public abstract static class Node<E extends Node<E>> {
    private final PreemptionClass preemptionClass;
    private @Nullable E previous;
    private @Nullable E next;
    private long arrival;
    private boolean queued;

    /**
     * Creates an element that is in no queue.
     *
     * @param preemptionClass its class
     */
    protected Node(PreemptionClass preemptionClass) {
      this.preemptionClass = preemptionClass;
    }

    /** {@return its class} */
    public final PreemptionClass preemptionClass() {
      return preemptionClass;
    }
  }

  private static final class Line<E> {
    @Nullable E first;
    @Nullable E last;
    int overtakes;
  }

  private final Line<E> online = new Line<>();
  private final Line<E> nearline = new Line<>();
  private final Line<E> offline = new Line<>();
  private long arrivals;
  private int size;

  /** {@return the number of waiting elements} */
  public int size() {
    return size;
  }

  /** {@return whether no element waits} */
  public boolean isEmpty() {
    return size == 0;
  }

  /**
   * Adds an element behind those of its class.
   *
   * @param element must be in no queue
   */
  public void add(E element) {
    Node<E> node = element;
    Line<E> line = line(node.preemptionClass);
    node.arrival = arrivals++;
    node.previous = line.last;
    node.next = null;
    if (line.last == null) {
      line.first = element;
    } else {
      link(line.last).next = element;
    }
    line.last = element;
    node.queued = true;
    size++;
  }

  /**
   * Puts an element that was in this queue before back at the front of its class.
   *
   * @param element must be in no queue
   */
  public void addFirst(E element) {
    Node<E> node = element;
    Line<E> line = line(node.preemptionClass);
    node.arrival = line.first == null ? arrivals++ : link(line.first).arrival;
    node.previous = null;
    node.next = line.first;
    if (line.first == null) {
      line.last = element;
    } else {
      link(line.first).previous = element;
    }
    line.first = element;
    node.queued = true;
    size++;
  }

  /** {@return the element to serve next; null if none waits} */
  public @Nullable E peek() {
    E best = null;
    if (offline.overtakes >= MOST_OVERTAKES) {
      best = offline.first;
    }
    if (nearline.overtakes >= MOST_OVERTAKES && isEarlier(nearline.first, best)) {
      best = nearline.first;
    }
    if (best != null) {
      return best;
    }
    if (online.first != null) {
      return online.first;
    }
    return nearline.first != null ? nearline.first : offline.first;
  }

  /**
   * {@return all elements: the one to serve next, then the others in order of class, then arrival}
   */
  public List<E> inOrder() {
    List<E> all = new ArrayList<>(size);
    E next = peek();
    if (next != null) {
      all.add(next);
    }
    for (Line<E> line : List.of(online, nearline, offline)) {
      for (E element = line.first; element != null; element = link(element).next) {
        if (element != next) {
          all.add(element);
        }
      }
    }
    return all;
  }

  /** {@return the element to serve next, removed from the queue; null if none waits} */
  public @Nullable E poll() {
    E element = peek();
    if (element != null) {
      Node<E> node = element;
      remove(element);
      countOvertake(node.preemptionClass, node.arrival);
    }
    return element;
  }

  /**
   * {@return whether a new arrival of this class would be served before all waiting elements}
   *
   * @param arriving the class of the arrival
   */
  public boolean isFirstInLine(PreemptionClass arriving) {
    E next = peek();
    if (next == null) {
      return true;
    }
    Node<E> node = next;
    return arriving.isMoreUrgentThan(node.preemptionClass)
        && line(node.preemptionClass).overtakes < MOST_OVERTAKES;
  }

  /**
   * Records that an arrival was served without waiting, before elements of less urgent classes.
   *
   * @param served the arrival's class
   */
  public void servedWithoutWaiting(PreemptionClass served) {
    countOvertake(served, Long.MAX_VALUE);
  }

  /**
   * Removes an element.
   *
   * @param element the element
   * @return whether it was in the queue
   */
  public boolean remove(E element) {
    Node<E> node = element;
    if (!node.queued) {
      return false;
    }
    Line<E> line = line(node.preemptionClass);
    if (node.previous == null) {
      line.first = node.next;
      line.overtakes = 0;
    } else {
      link(node.previous).next = node.next;
    }
    if (node.next == null) {
      line.last = node.previous;
    } else {
      link(node.next).previous = node.previous;
    }
    node.previous = null;
    node.next = null;
    node.queued = false;
    size--;
    return true;
  }

  /**
   * {@return the largest value among the waiting elements; 0 if there are none} Takes time linear
   * in their number.
   *
   * @param value the value of an element; 0 or more
   */
  public long largest(ToLongFunction<? super E> value) {
    return Math.max(
        largest(online, value), Math.max(largest(nearline, value), largest(offline, value)));
  }

  private long largest(Line<E> line, ToLongFunction<? super E> value) {
    long largest = 0;
    for (E element = line.first; element != null; element = link(element).next) {
      largest = Math.max(largest, value.applyAsLong(element));
    }
    return largest;
  }

  private void countOvertake(PreemptionClass served, long arrival) {
    if (served.isMoreUrgentThan(PreemptionClass.OFFLINE)) {
      countOvertake(offline, arrival);
    }
    if (served.isMoreUrgentThan(PreemptionClass.NEARLINE)) {
      countOvertake(nearline, arrival);
    }
  }

  private void countOvertake(Line<E> line, long arrival) {
    if (line.first != null && link(line.first).arrival < arrival) {
      line.overtakes++;
    }
  }

  private boolean isEarlier(@Nullable E element, @Nullable E other) {
    return element != null && (other == null || link(element).arrival < link(other).arrival);
  }

  private Node<E> link(E element) {
    return element;
  }

  private Line<E> line(PreemptionClass preemptionClass) {
    return switch (preemptionClass) {
      case ONLINE -> online;
      case NEARLINE -> nearline;
      case OFFLINE -> offline;
    };
  }
}
