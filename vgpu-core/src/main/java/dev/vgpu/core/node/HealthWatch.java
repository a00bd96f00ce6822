package dev.vgpu.core.node;

import dev.vgpu.GpuPool.Listening;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.book.GpuBook;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.book.NodeContext;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.request.GpuId;
import dev.vgpu.spi.GpuHealthListener;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuHealth;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Watches the health of the GPUs, in the process that decides about them. It marks lost GPUs, on
 * which nothing is granted until they are back, and publishes each change. Thread-safe.
 */
public final class HealthWatch implements GpuHealthListener, AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(HealthWatch.class);

  private static final String NOT_YET =
      "it was not there when the node's pool was opened: it is used when all processes of the node"
          + " have closed their pools and one is opened again";

  private final NodeContext node;
  private final LeaseTable table;
  private final Listening watches;

  private HealthWatch(NodeContext node, LeaseTable table, Discovery discovery) {
    this.node = node;
    this.table = table;
    this.watches = discovery.watch(this);
  }

  /** Starts to watch the GPUs of a table. */
  public static HealthWatch start(NodeContext node, LeaseTable table, Discovery discovery) {
    return new HealthWatch(node, table, discovery);
  }

  @Override
  public void changed(GpuId gpu, GpuHealth health, String reason) {
    for (GpuBook book : table.books()) {
      if (book.gpu.id().equals(gpu)) {
        change(book, new GpuBook.Condition(health, reason));
      }
    }
  }

  private void change(GpuBook book, GpuBook.Condition condition) {
    GpuHealth before = book.condition.health();
    boolean isHealthy = condition.health() == GpuHealth.HEALTHY;
    table.change(
        () ->
            book.condition = isHealthy ? new GpuBook.Condition(GpuHealth.HEALTHY, "") : condition);
    if (before == GpuHealth.HEALTHY && isHealthy) {
      return;
    }
    if (isHealthy) {
      log.info("gpu={} is back: {}", book.gpu.id(), condition.reason());
    } else {
      log.warn("gpu={} is {}: {}", book.gpu.id(), condition.health(), condition.reason());
    }
    tell("", book, condition);
    for (Booking booking : table.bookings()) {
      if (booking.books.contains(book)) {
        tell(booking.id, book, condition);
      }
    }
  }

  private void tell(String virtualGpu, GpuBook book, GpuBook.Condition condition) {
    node.listeners()
        .publish(
            at ->
                new GpuEvent.HealthChanged(
                    at, virtualGpu, book.gpu.id(), condition.health(), condition.reason()));
  }

  @Override
  public void fault(GpuId gpu, String reason) {
    if (table.books().stream().anyMatch(book -> book.gpu.id().equals(gpu))) {
      log.warn("gpu={} tells of a fault: {}", gpu, reason);
      node.listeners().publish(at -> new GpuEvent.GpuFault(at, "", gpu, reason));
    }
  }

  /**
   * Only announces the GPU. The schedulers, the books and the other processes know only the GPUs
   * present when the first pool of the node was opened. The new GPU is used after all pools of the
   * node were closed.
   */
  @Override
  public void appeared(GpuId gpu) {
    if (table.books().stream().noneMatch(book -> book.gpu.id().equals(gpu))) {
      log.info("gpu={} is new; {}", gpu, NOT_YET);
      node.listeners()
          .publish(at -> new GpuEvent.HealthChanged(at, "", gpu, GpuHealth.HEALTHY, NOT_YET));
    }
  }

  @Override
  public void close() {
    watches.close();
  }
}
