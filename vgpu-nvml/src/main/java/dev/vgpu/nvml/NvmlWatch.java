package dev.vgpu.nvml;

import dev.vgpu.GpuDriverException;
import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.nvml.binding.NativeCalls;
import dev.vgpu.nvml.binding.Nvml;
import dev.vgpu.nvml.binding.NvmlState;
import dev.vgpu.nvml.binding.NvmlTypes;
import dev.vgpu.request.GpuId;
import dev.vgpu.spi.GpuHealthListener;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Watches GPUs on its own thread. Twice a second it looks for NVML's events (critical errors and
 * memory errors), and checks whether each GPU still answers. If one does not, it restarts NVML
 * until all are back: a reloaded driver does not answer a process that initialized NVML before.
 *
 * <p>GPUs are identified by UUID, because their indices may change.
 */
final class NvmlWatch implements GpuPool.Listening {
  private static final Logger log = LoggerFactory.getLogger(NvmlWatch.class);
  private static final long WAIT_NS = 500_000_000L;

  /** A wait in NVML cannot be interrupted, so {@link #close} may take this long. */
  private static final int EVENT_WAIT_MS = 1;

  /** The longest wait in {@link #close}, reached only if the driver does not answer. */
  private static final long LONGEST_END_MS = 1_000;

  private static final int MOST_ROUNDS = 16;
  private static final long WANTED =
      NvmlTypes.EVENT_TYPE_XID_CRITICAL_ERROR
          | NvmlTypes.EVENT_TYPE_SINGLE_BIT_ECC_ERROR
          | NvmlTypes.EVENT_TYPE_DOUBLE_BIT_ECC_ERROR;

  /** What the watch needs from its owner. */
  interface Source {
    /** Opens NVML. */
    NvmlSession open();

    /** The GPUs that were found so far. */
    Collection<GpuId> gpus();

    /** Closes NVML throughout this JVM, so that a reloaded driver can be opened. */
    void letGo();

    /** Keeps a GPU's health for later readings. */
    void remember(GpuId gpu, GpuHealth health, String reason);
  }

  /** How many of the GPUs answered at the start. */
  private enum There {
    ALL,
    SOME,
    NONE
  }

  private record Told(GpuHealth health, String reason) {}

  private final Source source;
  private final GpuHealthListener listener;
  private final Map<GpuId, Told> told = new HashMap<>();
  private final ByteBuffer number = NativeCalls.memory(Long.BYTES);
  private final ByteBuffer event = NativeCalls.memory(NvmlTypes.EVENT_BYTES);
  private final Thread thread;
  private final Set<GpuId> announced = new HashSet<>();

  /** The GPUs whose last poll did not show whether they work. */
  private final Set<GpuId> unclear = new HashSet<>();

  /** The number of whole GPUs at the last look; GPUs may come and go. */
  private int count = -1;

  private volatile boolean closed;

  private NvmlWatch(Source source, GpuHealthListener listener) {
    this.source = source;
    this.listener = listener;
    this.thread = new Thread(this::run, "vgpu-nvml-watch");
    thread.setDaemon(true);
  }

  static NvmlWatch start(Source source, GpuHealthListener listener) {
    NvmlWatch watch = new NvmlWatch(source, listener);
    watch.thread.start();
    return watch;
  }

  /** Waits for the thread, because its class loader may be closed next. */
  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
    if (thread != Thread.currentThread()) {
      try {
        thread.join(LONGEST_END_MS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void run() {
    int rounds = 1; // looks before NVML is restarted, if a GPU is missing
    while (!closed) {
      There there = There.NONE;
      try {
        there = look(rounds);
      } catch (RuntimeException | Error e) { // such as a lack of memory, which may pass
        log.error("GPUs cannot be watched now, and this is tried again", e);
      }
      if (there == There.NONE && !closed) {
        LockSupport.parkNanos(this, rounds * WAIT_NS);
      }
      rounds = there == There.ALL ? 1 : Math.min(2 * rounds, MOST_ROUNDS);
    }
  }

  private There look(int rounds) {
    try (NvmlSession session = source.open()) {
      return watch(session, rounds);
    } catch (VgpuException e) {
      String reason = String.valueOf(e.getMessage());
      source.gpus().forEach(gpu -> tell(gpu, GpuHealth.LOST, reason));
      return There.NONE;
    } finally {
      source.letGo();
    }
  }

  private void tell(GpuId gpu, GpuHealth health, String reason) {
    Told before = told.put(gpu, new Told(health, reason));
    GpuHealth was = before == null ? GpuHealth.HEALTHY : before.health();
    source.remember(gpu, health, reason);
    boolean isNews =
        was != health || (health == GpuHealth.DEGRADED && !reason.equals(before.reason()));
    if (isNews && !closed) {
      listener.changed(gpu, health, reason);
    }
  }

  private GpuHealth health(GpuId gpu) {
    Told last = told.get(gpu);
    return last == null ? GpuHealth.HEALTHY : last.health();
  }

  /**
   * Watches while all GPUs that answer now keep answering; if one is missing, for some rounds at
   * most. Returns how many answered.
   */
  private There watch(NvmlSession session, int rounds) {
    Map<Long, GpuId> devices = new LinkedHashMap<>();
    boolean allThere = true;
    for (GpuId gpu : source.gpus()) {
      number.putLong(0, 0);
      int found = session.find(gpu, number);
      boolean isFound = found == Nvml.NVML_SUCCESS;
      int code = isFound ? session.probe(number.getLong(0)) : found;
      if (!isFound || code == Nvml.NVML_ERROR_NOT_FOUND || NvmlSession.isGone(code)) {
        allThere &= isDestroyed(gpu, code);
        tell(gpu, GpuHealth.LOST, session.words(code));
      } else if (health(gpu) == GpuHealth.LOST && !isAnswer(code)) {
        allThere = false; // no code is a proof that it is back
      } else {
        devices.put(number.getLong(0), gpu);
        if (health(gpu) == GpuHealth.LOST) {
          tell(gpu, GpuHealth.HEALTHY, "the driver answers again");
        }
      }
    }
    if (devices.isEmpty()) {
      return There.NONE; // NVML is closed meanwhile: others here can restart it
    }
    NvmlState state = session.state();
    long set = eventSet(state, devices.keySet());
    try {
      boolean goesOn = true;
      for (int i = 0; goesOn && !closed && (allThere || i < rounds); i++) {
        lookForNew(session);
        goesOn = next(session, set, devices) && poll(session, devices);
      }
      return allThere ? There.ALL : There.SOME;
    } finally {
      if (set != 0) {
        int ignored = state.nvmlEventSetFree(set);
      }
    }
  }

  /**
   * Some drivers report new GPUs only after a restart of NVML, which happens if another is missing.
   */
  private void lookForNew(NvmlSession session) {
    int now = session.count();
    if (now == count) {
      return;
    }
    count = now;
    Collection<GpuId> known = source.gpus();
    try {
      for (PhysicalGpu gpu : session.gpus("")) {
        GpuId id = gpu.id();
        if (!NvmlSession.isInstance(id) && !known.contains(id) && announced.add(id) && !closed) {
          listener.appeared(id);
        }
      }
    } catch (GpuDriverException e) {
      log.debug("the GPUs cannot be listed now", e);
    }
  }

  /** {@return a set for the events that the devices support; 0 if they support none} */
  private long eventSet(NvmlState state, Collection<Long> devices) {
    if (state.nvmlEventSetCreate(number) != Nvml.NVML_SUCCESS) {
      return 0;
    }
    long set = number.getLong(0);
    boolean any = false;
    for (long device : devices) {
      int code = state.nvmlDeviceGetSupportedEventTypes(device, number);
      long types = code == Nvml.NVML_SUCCESS ? number.getLong(0) & WANTED : 0;
      any |= types != 0 && state.nvmlDeviceRegisterEvents(device, types, set) == Nvml.NVML_SUCCESS;
    }
    if (!any) {
      int ignored = state.nvmlEventSetFree(set);
      return 0;
    }
    return set;
  }

  /** Waits for an event and reports it; false if NVML must be restarted. */
  private boolean next(NvmlSession session, long set, Map<Long, GpuId> devices) {
    if (set == 0) {
      LockSupport.parkNanos(this, WAIT_NS);
      return true;
    }
    int code = awaitEvent(session.state(), set);
    if (code == Nvml.NVML_SUCCESS) {
      GpuId gpu = devices.get(event.getLong(NvmlTypes.EVENT_DEVICE));
      if (gpu != null) {
        happened(gpu, event.getLong(NvmlTypes.EVENT_TYPE), event.getLong(NvmlTypes.EVENT_DATA));
      }
      return gpu == null || health(gpu) != GpuHealth.LOST;
    }
    if (code != NvmlTypes.NVML_ERROR_TIMEOUT) {
      log.debug("the wait for events failed: {}", session.words(code));
    }
    LockSupport.parkNanos(this, WAIT_NS); // no busy loop, whatever it answers
    return true;
  }

  private int awaitEvent(NvmlState state, long set) {
    int code = state.nvmlEventSetWait_v2(set, event, EVENT_WAIT_MS);
    return code == Nvml.NVML_ERROR_FUNCTION_NOT_FOUND
        ? state.nvmlEventSetWait(set, event, EVENT_WAIT_MS)
        : code;
  }

  private void happened(GpuId gpu, long type, long data) {
    if (type == NvmlTypes.EVENT_TYPE_XID_CRITICAL_ERROR) {
      String words = NvmlNames.xid(data);
      if (NvmlNames.isLoss(data)) {
        tell(gpu, GpuHealth.LOST, words);
      } else if (NvmlNames.isOfProgram(data)) {
        listener.fault(gpu, words);
      } else {
        tell(gpu, GpuHealth.DEGRADED, words);
      }
    } else if (type == NvmlTypes.EVENT_TYPE_DOUBLE_BIT_ECC_ERROR) {
      tell(gpu, GpuHealth.DEGRADED, "an error of the memory that cannot be corrected");
    } else {
      listener.fault(gpu, "an error of the memory was corrected");
    }
  }

  /**
   * {@return whether a probe's code shows that the GPU works} Some GPUs report no memory, and one
   * in MIG mode only to root.
   */
  private static boolean isAnswer(int code) {
    return code == Nvml.NVML_SUCCESS
        || code == Nvml.NVML_ERROR_NOT_SUPPORTED
        || code == NvmlTypes.NVML_ERROR_NO_PERMISSION;
  }

  /** A destroyed instance does not come back, and is no reason to restart NVML. */
  private static boolean isDestroyed(GpuId gpu, int code) {
    return NvmlSession.isInstance(gpu) && code == Nvml.NVML_ERROR_NOT_FOUND;
  }

  /**
   * Checks whether all GPUs still answer, and reports those that do not. An error that does not say
   * that the GPU is gone may be over at the next look.
   */
  private boolean poll(NvmlSession session, Map<Long, GpuId> devices) {
    boolean all = true;
    for (Map.Entry<Long, GpuId> device : devices.entrySet()) {
      int code = session.probe(device.getKey());
      boolean isDestroyed = isDestroyed(device.getValue(), code);
      boolean isUnclear = !isAnswer(code) && unclear.add(device.getValue());
      if (isAnswer(code)) {
        unclear.remove(device.getValue());
      } else if (isDestroyed || NvmlSession.isGone(code) || !isUnclear) {
        all &= isDestroyed;
        tell(device.getValue(), GpuHealth.LOST, session.words(code));
      }
    }
    return all;
  }
}
