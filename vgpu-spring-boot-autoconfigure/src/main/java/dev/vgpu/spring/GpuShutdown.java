package dev.vgpu.spring;

import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.watch.GpuEvent;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.SmartLifecycle;

/**
 * Releases the virtual GPUs when the service ends: after the web server has answered its last
 * request and executors have ended, before beans are destroyed. Waiting calls fail. Running calls
 * are left to finish, so that no session is freed during a call. {@code
 * spring.lifecycle.timeout-per-shutdown-phase} bounds the wait. A context that is only paused or
 * stopped keeps its beans, and so its virtual GPUs: it may be started again.
 */
final class GpuShutdown implements SmartLifecycle {
  /**
   * Below Spring's executors, which are at half the range, and the web server, which is near its
   * end.
   */
  static final int PHASE = Integer.MAX_VALUE / 2 - 1024;

  private final ConfigurableApplicationContext context;
  private final GpuPool pool;
  private final ObjectProvider<VirtualGpu> gpus;
  private volatile boolean running;

  GpuShutdown(
      ConfigurableApplicationContext context, GpuPool pool, ObjectProvider<VirtualGpu> gpus) {
    this.context = context;
    this.pool = pool;
    this.gpus = gpus;
  }

  @Override
  public void start() {
    running = true;
  }

  @Override
  public void stop() {
    running = false;
    if (isEnd()) {
      gpus.forEach(VirtualGpu::close);
    }
  }

  /** {@return whether the beans go next: the context is closed, or its start has failed} */
  private boolean isEnd() {
    return context.isClosed() || !context.isRunning();
  }

  @Override
  public void stop(Runnable callback) {
    running = false;
    if (!isEnd()) {
      callback.run();
      return;
    }
    List<VirtualGpu> open = gpus.stream().filter(gpu -> !gpu.isClosed()).toList();
    Set<String> left = ConcurrentHashMap.newKeySet();
    open.forEach(gpu -> left.add(gpu.id()));
    if (left.isEmpty()) {
      callback.run();
      return;
    }
    // Closed is reported when the last running call has ended. The listening ends with the pool.
    GpuPool.Listening unused =
        pool.listen(
            event -> {
              if (event instanceof GpuEvent.Closed
                  && left.remove(event.virtualGpu())
                  && left.isEmpty()) {
                callback.run();
              }
            });
    open.forEach(VirtualGpu::close);
  }

  @Override
  public boolean isRunning() {
    return running;
  }

  /** Not there before Spring 7. */
  @Override
  public boolean isPauseable() {
    return false;
  }

  @Override
  public int getPhase() {
    return PHASE;
  }
}
