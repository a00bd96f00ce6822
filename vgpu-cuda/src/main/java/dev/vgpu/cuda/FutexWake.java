package dev.vgpu.cuda;

import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Wakes by the futex that the hook waits on. JNA is loaded for that beside the caller, from the
 * first lease on: it takes 100 ms and more in a fresh JVM. Until then nobody is woken; who waits
 * looks by itself every few milliseconds.
 */
final class FutexWake implements Wake {
  private static final Logger log = LoggerFactory.getLogger(FutexWake.class);

  private final AtomicBoolean begun = new AtomicBoolean();
  private volatile boolean ready;

  @Override
  public void prepare() {
    if (begun.compareAndSet(false, true)) {
      Thread loader = new Thread(this::load, "vgpu-hook-futex");
      loader.setDaemon(true);
      loader.start();
    }
  }

  private void load() {
    try {
      LinuxCalls.load();
      ready = true;
    } catch (LinkageError e) {
      log.warn("JNA cannot be used here, so waiting programs are not woken: {}", e.getMessage());
    }
  }

  @Override
  public void all(SharedPage page, int offset) {
    if (ready) {
      LinuxCalls.wakeAll(page, offset);
    }
  }
}
