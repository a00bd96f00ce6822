package dev.vgpu.cuda.attach;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.PointerByReference;
import dev.vgpu.VgpuException;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One GPU's processors, as this process divides them among its leases. The driver splits them into
 * the smallest groups that it can make, and each lease owns some groups. Guarded by the lock of the
 * class; a {@link Part} may be used without it.
 */
final class GreenSpace {
  private static final Logger log = LoggerFactory.getLogger(GreenSpace.class);

  // cuda.h
  private static final int RESOURCE_BYTES = 144;
  private static final int RESOURCE_SM_COUNT = 96;
  private static final int RESOURCE_TYPE_SM = 1;
  private static final int GREEN_DEFAULT_STREAM = 1;
  private static final int NOT_FOUND = 500;
  private static final int NOT_SUPPORTED = 801;
  private static final int UUID_BYTES = 16;

  private static final Map<String, GreenSpace> SPACES = new HashMap<>();

  private final String gpu;
  private final int device;
  private final FileChannel lock;
  private final Memory groups;
  private final boolean[] taken;
  private final int processors;
  private int parts;

  private GreenSpace(String gpu, Path lockFile) {
    this.gpu = gpu;
    this.lock = lock(lockFile);
    boolean done = false;
    try {
      check("cuInit", call("cuInit", 0));
      this.device = device(gpu);
      Memory all = resources(1);
      check(
          "cuDeviceGetDevResource", call("cuDeviceGetDevResource", device, all, RESOURCE_TYPE_SM));
      this.processors = all.getInt(RESOURCE_SM_COUNT);
      IntByReference count = new IntByReference();
      check("cuDevSmResourceSplitByCount", split(Pointer.NULL, count, all));
      int most = count.getValue();
      if (most < 1 || most > processors) {
        throw new VgpuException("the GPU's processors cannot be divided: groups=" + most);
      }
      this.groups = resources(most);
      check("cuDevSmResourceSplitByCount", split(groups, count, all));
      this.taken = new boolean[Math.min(most, count.getValue())];
      done = true;
    } finally {
      if (!done) {
        unlock();
      }
    }
  }

  /** The groups that one lease owns, with their context. */
  static final class Part {
    private final GreenSpace space;
    private final Pointer green;
    private final Pointer context;
    private final boolean[] own;

    private Part(GreenSpace space, Pointer green, Pointer context, boolean[] own) {
      this.space = space;
      this.green = green;
      this.context = context;
      this.own = own;
    }

    /** {@return the calling thread's context; null if none is current} */
    @Nullable Pointer current() {
      PointerByReference current = new PointerByReference();
      check("cuCtxGetCurrent", call("cuCtxGetCurrent", current));
      return current.getValue();
    }

    /** Makes this part's context current on the calling thread. */
    void enter() {
      check("cuCtxSetCurrent", call("cuCtxSetCurrent", context));
    }

    /** Destroys the context and releases its processors; never throws. */
    void close() {
      int code = call("cuGreenCtxDestroy", green);
      if (code != 0) {
        log.warn("a green context cannot be destroyed: gpu={} code={}", space.gpu, code);
      }
      space.release(own);
    }
  }

  /** Takes the part that a lease's variables describe. The caller is bound to the lease. */
  static synchronized Part take(Map<String, String> environment) {
    String gpu = environment.getOrDefault("CUDA_VISIBLE_DEVICES", "");
    int percent = Integer.parseInt(environment.getOrDefault(GreenEnforcement.PERCENT, "0"));
    Path lock = Path.of(environment.getOrDefault(GreenEnforcement.LOCK, ""));
    GreenSpace space = SPACES.get(gpu);
    if (space == null) {
      space = new GreenSpace(gpu, lock);
    }
    boolean done = false;
    try {
      Part part = space.part(percent);
      SPACES.put(gpu, space);
      done = true;
      return part;
    } finally {
      if (!done && space.parts == 0) {
        space.unlock();
      }
    }
  }

  /** Makes a context current on the calling thread; null: none. */
  static void restore(@Nullable Pointer context) {
    int code = call("cuCtxSetCurrent", context);
    if (code != 0) {
      log.debug("a thread's context from before cannot be current again: code={}", code);
    }
  }

  private Part part(int percent) {
    int size = groups.getInt(RESOURCE_SM_COUNT);
    int wanted = Math.max(1, processors * percent / 100 / size);
    boolean[] own = new boolean[taken.length];
    Memory chosen = resources(wanted);
    int found = 0;
    for (int i = 0; i < taken.length && found < wanted; i++) {
      if (!taken[i]) {
        own[i] = true;
        byte[] group = groups.getByteArray((long) i * RESOURCE_BYTES, RESOURCE_BYTES);
        chosen.write((long) found++ * RESOURCE_BYTES, group, 0, RESOURCE_BYTES);
      }
    }
    if (found < wanted) {
      throw new VgpuException(
          "the GPU has not enough free processors: gpu="
              + gpu
              + " wanted="
              + wanted * size
              + " free="
              + found * size
              + " of="
              + processors
              + "; they are given in groups of "
              + size);
    }
    PointerByReference descriptor = new PointerByReference();
    PointerByReference green = new PointerByReference();
    PointerByReference context = new PointerByReference();
    check(
        "cuDevResourceGenerateDesc", call("cuDevResourceGenerateDesc", descriptor, chosen, wanted));
    check(
        "cuGreenCtxCreate",
        call("cuGreenCtxCreate", green, descriptor.getValue(), device, GREEN_DEFAULT_STREAM));
    int code = call("cuCtxFromGreenCtx", context, green.getValue());
    if (code != 0) {
      int ignored = call("cuGreenCtxDestroy", green.getValue());
      check("cuCtxFromGreenCtx", code);
    }
    for (int i = 0; i < own.length; i++) {
      taken[i] |= own[i];
    }
    parts++;
    log.debug("gpu={} percent={} processors={}", gpu, percent, wanted * size);
    return new Part(this, green.getValue(), context.getValue(), own);
  }

  private void release(boolean[] own) {
    synchronized (GreenSpace.class) {
      for (int i = 0; i < own.length; i++) {
        taken[i] &= !own[i];
      }
      parts--;
      if (parts == 0) {
        SPACES.remove(gpu);
        unlock();
      }
    }
  }

  // ---- one process at a time: two would use the same processors

  private FileChannel lock(Path file) {
    try {
      FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE);
      if (channel.tryLock() != null) {
        return channel;
      }
      channel.close();
    } catch (IOException e) {
      throw new VgpuException("green contexts cannot be begun: lock=" + file, e);
    }
    throw new VgpuException(
        "another process has green contexts on this GPU, and only one can: gpu=" + gpu);
  }

  private void unlock() {
    try {
      lock.close();
    } catch (IOException e) {
      log.debug("a lock cannot be closed: gpu={}", gpu, e);
    }
  }

  // ---- driver calls through the hook

  private static Memory resources(int count) {
    Memory memory = new Memory((long) count * RESOURCE_BYTES);
    memory.clear();
    return memory;
  }

  /** Splits all processors into the smallest groups. */
  private static int split(Pointer into, IntByReference count, Memory all) {
    return call("cuDevSmResourceSplitByCount", into, count, all, Pointer.NULL, 0, 1);
  }

  /** {@return the GPU's device ordinal in this process} */
  private static int device(String gpu) {
    IntByReference count = new IntByReference();
    check("cuDeviceGetCount", call("cuDeviceGetCount", count));
    Memory uuid = new Memory(UUID_BYTES);
    for (int i = 0; i < count.getValue(); i++) {
      if (call("cuDeviceGetUuid_v2", uuid, i) == 0
          && gpu.toLowerCase(Locale.ROOT).endsWith(text(uuid.getByteArray(0, UUID_BYTES)))) {
        return i;
      }
    }
    throw new VgpuException("this process does not see the GPU: gpu=" + gpu);
  }

  private static String text(byte[] uuid) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < uuid.length; i++) {
      text.append(i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "");
      text.append(String.format(Locale.ROOT, "%02x", uuid[i]));
    }
    return text.toString();
  }

  private static int call(String name, @Nullable Object... arguments) {
    NativeLibrary hook = SelfAttachment.hook();
    Function function;
    try {
      function = hook.getFunction(name);
    } catch (UnsatisfiedLinkError e) {
      return NOT_FOUND;
    }
    return function.invokeInt(arguments);
  }

  private static void check(String name, int code) {
    if (code == NOT_SUPPORTED || code == NOT_FOUND) {
      throw new VgpuException(
          "the driver has no green contexts, which came with CUDA 12.4 (driver 550): use turns, or"
              + " MPS for programs: function="
              + name
              + " code="
              + code);
    }
    if (code != 0) {
      throw new VgpuException("green contexts cannot be used: " + name + " failed: code=" + code);
    }
  }
}
