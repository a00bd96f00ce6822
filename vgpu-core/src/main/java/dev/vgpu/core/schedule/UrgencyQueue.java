package dev.vgpu.core.schedule;

import dev.vgpu.PreemptionClass;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Those who wait, in order of class, then arrival, and nobody is overtaken for ever: an element
 * that is first of its class and was overtaken {@value #MOST_OVERTAKES} times by later arrivals of
 * more urgent classes is overtaken no more. Every operation takes constant time. Not safe for use
 * by several threads: guarded by its owner.
 *
 * @param <E> who waits
 */
public final class UrgencyQueue<E extends UrgencyQueue.Node<E>> {
  /** How often the first of a class is overtaken at most. */
  public static final int MOST_OVERTAKES = 64;

  /**
   * An element: holds its own links, and stands in one queue at most.
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
     * Makes one that stands in no queue.
     *
     * @param preemptionClass how urgent it is
     */
    protected Node(PreemptionClass preemptionClass) {
      this.preemptionClass = preemptionClass;
    }

    /** {@return how urgent it is} */
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

  /** {@return how many wait} */
  public int size() {
    return size;
  }

  /** {@return whether nobody waits} */
  public boolean isEmpty() {
    return size == 0;
  }

  /**
   * Adds an element behind those of its class.
   *
   * @param element stands in no queue
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
   * Puts an element that was here before back in front of its class.
   *
   * @param element stands in no queue
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

  /** {@return who is served next; null if nobody waits} */
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

  /** {@return all who wait: who is served next, then the others in order of class, then arrival} */
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

  /** {@return who is served next, taken out; null if nobody waits} */
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
   * {@return whether one of this class that arrives now would be served before all who wait}
   *
   * @param arriving the class
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
   * Notes that one who did not wait was served before those of less urgent classes.
   *
   * @param served its class
   */
  public void servedWithoutWaiting(PreemptionClass served) {
    countOvertake(served, Long.MAX_VALUE);
  }

  /**
   * Takes an element out.
   *
   * @param element which one
   * @return whether it was in
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
   * {@return the largest value among those who wait; 0 if nobody does} Takes time linear in their
   * number.
   *
   * @param value what is asked of each; 0 or more
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
