package dev.vgpu.cuda.attach;

import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.NativeLong;
import com.sun.jna.Pointer;
import com.sun.jna.StringArray;
import dev.vgpu.VgpuException;
import dev.vgpu.cuda.layout.HookEnvironment;
import dev.vgpu.files.JnaPlace;
import dev.vgpu.files.UntrustedFileException;
import dev.vgpu.spi.ProcessAttachment;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Puts this process under leases. The first lease loads the hook, which must come before any CUDA
 * library; later lookups of {@code libcuda.so.1} find the hook. It is never unloaded. Each lease is
 * one tenant of the process, and each thread works for the tenant that it is bound to.
 */
public final class SelfAttachment implements ProcessAttachment {
  // dlfcn.h
  private static final int RTLD_NOW = 0x2;
  private static final int RTLD_GLOBAL = 0x100;
  private static final int RTLD_NODELETE = 0x1000;

  private static final int REASON_BYTES = 512;

  /** The handle of no lease. */
  private static final long UNBOUND = 0;

  private static @Nullable NativeLibrary loaded;

  private final String lease;
  private final long handle;
  private final AtomicBoolean closed = new AtomicBoolean();

  private SelfAttachment(String lease, long handle) {
    this.lease = lease;
    this.handle = handle;
  }

  /**
   * Puts this process under one more lease. The first call loads the hook.
   *
   * @param environment the variables that the lease gives its programs
   * @param maps the process's mappings, in the format of {@code /proc/self/maps}
   * @throws IllegalStateException if CUDA is loaded already, or the process is under that lease
   * @throws VgpuException if the hook cannot be loaded, or it refuses
   */
  public static synchronized SelfAttachment attach(Map<String, String> environment, Path maps) {
    String lease = environment.getOrDefault(HookEnvironment.VGPU_LEASE, "");
    NativeLibrary hook = loaded;
    if (hook == null) {
      hook = load(environment, maps, lease);
      Native.register(HookCalls.class, hook);
      loaded = hook;
    }
    // If this fails, the caller may retry; the library stays loaded.
    return new SelfAttachment(lease, add(environment, lease));
  }

  /** {@return the hook that this process has loaded} */
  static synchronized NativeLibrary hook() {
    NativeLibrary hook = loaded;
    if (hook == null) {
      throw new IllegalStateException("this process is under no virtual GPU");
    }
    return hook;
  }

  @Override
  public void bindThread() {
    GreenAttachment.leaveSpace();
    if (HookCalls.vgpu_tenant_bind(handle) < 0) {
      throw new IllegalStateException("this process has left the virtual GPU: id=" + lease);
    }
  }

  @Override
  public void unbindThread() {
    long ignored = HookCalls.vgpu_tenant_bind(UNBOUND);
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      int ignored = HookCalls.vgpu_tenant_drop(handle);
    }
  }

  private static NativeLibrary load(Map<String, String> environment, Path maps, String lease) {
    Optional<String> driver = loadedDriver(maps);
    if (driver.isPresent()) {
      throw new IllegalStateException(
          "CUDA is already loaded, so the hook cannot take effect: attach before the first use of a"
              + " CUDA library, or start the program with the virtual GPU's environment: mapped="
              + driver.get());
    }
    String preload = environment.get("LD_PRELOAD");
    if (preload == null) {
      throw new VgpuException("the environment names no hook: lease=" + lease);
    }
    return load(preload.split(":", 2)[0]);
  }

  private static NativeLibrary load(String path) {
    try {
      JnaPlace.check(System.getenv());
      return NativeLibrary.getInstance(
          path, Map.of(Library.OPTION_OPEN_FLAGS, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE));
    } catch (UntrustedFileException | UnsatisfiedLinkError e) {
      // Keep only the loader's own line of JNA's message: PATH: REASON.
      String reason =
          String.valueOf(e.getMessage())
              .lines()
              .filter(line -> line.contains(path + ": "))
              .findFirst()
              .orElse(e.getMessage());
      throw new VgpuException("cannot load the hook: " + reason + " path=" + path, e);
    }
  }

  private static long add(Map<String, String> environment, String lease) {
    List<String> settings =
        new TreeMap<>(environment)
            .entrySet().stream()
                .filter(entry -> !entry.getKey().equals("LD_PRELOAD"))
                .map(entry -> entry.getKey() + "=" + entry.getValue())
                .toList();
    Memory reason = new Memory(REASON_BYTES);
    reason.clear();
    Pointer array = new StringArray(settings.toArray(new String[0]), "UTF-8");
    long handle = HookCalls.vgpu_tenant_add(array, reason, new NativeLong(REASON_BYTES));
    if (handle == HookCalls.UNDER_IT_ALREADY) {
      throw new IllegalStateException("this process is under the virtual GPU already: id=" + lease);
    }
    if (handle < 0) {
      throw new VgpuException(
          "this process cannot be put under the virtual GPU: "
              + reason.getString(0, StandardCharsets.UTF_8.name())
              + " lease="
              + lease);
    }
    return handle;
  }

  /** {@return the path of a CUDA driver that this process has mapped; empty if there is none} */
  public static Optional<String> loadedDriver(Path maps) {
    try {
      return Files.readAllLines(maps, StandardCharsets.ISO_8859_1).stream()
          .map(line -> line.substring(Math.max(0, line.indexOf('/'))))
          .filter(path -> path.startsWith("/") && path.contains("/libcuda.so"))
          .findFirst();
    } catch (IOException e) {
      throw new VgpuException("cannot see what this process has loaded: " + e.getMessage(), e);
    }
  }
}
