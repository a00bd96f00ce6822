package dev.vgpu.spring;

import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.PhysicalGpu;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.availability.AvailabilityChangeEvent;
import org.springframework.boot.availability.ReadinessState;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationListener;

/**
 * Refuses traffic while a GPU of the service's models is lost, and accepts it when all are back.
 * Liveness is not changed: a restart does not bring a GPU back. States set by others are left as
 * they are. Events tell of a change at once. Looks find those of which no event came, for example
 * because another process took the seat.
 */
final class GpuReadiness
    implements SmartInitializingSingleton,
        ApplicationListener<AvailabilityChangeEvent<ReadinessState>>,
        DisposableBean {
  private static final Logger log = LoggerFactory.getLogger(GpuReadiness.class);
  private static final long LOOK_S = 3;

  private final ApplicationContext context;
  private final GpuPool pool;
  private final ObjectProvider<VirtualGpu> gpus;
  private final Set<GpuId> used = new HashSet<>(); // guarded by this
  private final Set<GpuId> told = new HashSet<>(); // guarded by this: by events during a look
  private final LostGpus lost;
  private final ScheduledExecutorService looks =
      Executors.newSingleThreadScheduledExecutor(GpuReadiness::daemon);
  private boolean accepted; // guarded by this: whether the service itself accepts traffic
  private boolean refused; // guarded by this: whether this has refused it
  private GpuPool.@Nullable Listening listening;

  GpuReadiness(
      ApplicationContext context, GpuPool pool, ObjectProvider<VirtualGpu> gpus, LostGpus lost) {
    this.context = context;
    this.pool = pool;
    this.gpus = gpus;
    this.lost = lost;
  }

  @Override
  public void afterSingletonsInstantiated() {
    synchronized (this) {
      gpus.forEach(gpu -> gpu.gpus().stream().map(PhysicalGpu::id).forEach(used::add));
    }
    listening = pool.listen(this::onEvent);
    look();
    begin();
  }

  private static Thread daemon(Runnable task) {
    Thread thread = new Thread(task, "vgpu-readiness");
    thread.setDaemon(true);
    return thread;
  }

  @SuppressWarnings("FutureReturnValueIgnored") // lookAgain() throws nothing
  private void begin() {
    looks.scheduleWithFixedDelay(this::lookAgain, LOOK_S, LOOK_S, TimeUnit.SECONDS);
  }

  private void lookAgain() {
    try {
      look();
    } catch (RuntimeException | Error e) { // the seat's holder is gone, or the pool is closed
      log.debug("cannot read the GPUs' health; it is read again", e);
    }
  }

  /** An event during a look is newer than what the look read of its GPU. */
  private void look() {
    synchronized (this) {
      told.clear();
    }
    for (GpuState state : pool.states()) {
      synchronized (this) {
        if (!told.contains(state.gpu())) {
          changed(state.gpu(), state.health(), state.healthReason());
        }
      }
    }
  }

  private void onEvent(GpuEvent event) {
    if (event instanceof GpuEvent.HealthChanged change) {
      synchronized (this) {
        told.add(change.gpu());
        changed(change.gpu(), change.health(), change.reason());
      }
    }
  }

  private synchronized void changed(GpuId gpu, GpuHealth health, String reason) {
    if (!used.contains(gpu)) {
      return;
    }
    if (lost.changed(gpu, health, reason)) {
      if (health == GpuHealth.LOST) {
        log.warn("a GPU of this service's models is lost: gpu={} reason={}", gpu, reason);
      } else {
        log.info("a GPU of this service's models is back: gpu={}", gpu);
      }
    }
    tell();
  }

  private synchronized void tell() {
    if (!lost.isEmpty() && accepted && !refused) {
      refused = true;
      AvailabilityChangeEvent.publish(context, this, ReadinessState.REFUSING_TRAFFIC);
    } else if (lost.isEmpty() && refused) {
      refused = false;
      if (accepted) {
        AvailabilityChangeEvent.publish(context, this, ReadinessState.ACCEPTING_TRAFFIC);
      }
    }
  }

  /** Receives readiness states set by others; ignores its own. */
  @Override
  public synchronized void onApplicationEvent(AvailabilityChangeEvent<ReadinessState> event) {
    if (event.getSource() == this) {
      return;
    }
    accepted = event.getState() == ReadinessState.ACCEPTING_TRAFFIC;
    if (accepted) {
      refused = false; // it was overruled just now
    }
    tell();
  }

  @Override
  public void destroy() {
    looks.shutdownNow();
    if (listening != null) {
      listening.close();
    }
  }
}
