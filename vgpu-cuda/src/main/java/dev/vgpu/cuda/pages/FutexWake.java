package dev.vgpu.cuda.pages;

import dev.vgpu.files.JnaPlace;
import dev.vgpu.files.UntrustedFileException;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Wakes the futex that the hook waits on. From the first lease on, if not before, a separate thread
 * loads JNA, which takes 100 ms and more in a fresh JVM. Until then, no thread is woken; waiting
 * threads poll every few milliseconds.
 */
public final class FutexWake implements Wake {
  private static final Logger log = LoggerFactory.getLogger(FutexWake.class);

  private static final long LONGEST_LOAD_MS = 5_000;

  private final AtomicBoolean begun = new AtomicBoolean();
  private volatile boolean ready;
  private volatile @Nullable Thread loader;

  @Override
  public void prepare() {
    if (begun.compareAndSet(false, true)) {
      Thread loads = new Thread(this::load, "vgpu-hook-futex");
      loads.setDaemon(true);
      try {
        loads.start();
        loader = loads;
      } catch (OutOfMemoryError e) {
        log.warn("no thread can be started, so waiting programs are not woken");
      }
    }
  }

  private void load() {
    try {
      JnaPlace.check(System.getenv());
      LinuxCalls.load();
      ready = true;
    } catch (UntrustedFileException | LinkageError | OutOfMemoryError e) {
      log.warn("JNA cannot be used here, so waiting programs are not woken: {}", e.getMessage());
    }
  }

  /** Waits for the loading thread, because its class loader may be closed next. */
  @Override
  public void close() {
    Thread loads = loader;
    if (loads != null) {
      try {
        loads.join(LONGEST_LOAD_MS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  @Override
  public Optional<RobustWords> ofThisThread(int offset) {
    return ready ? Optional.of(new RobustWords(offset)) : Optional.empty();
  }

  @Override
  public void all(SharedPage page, int offset) {
    if (ready) {
      LinuxCalls.wakeAll(page, offset);
    }
  }
}
