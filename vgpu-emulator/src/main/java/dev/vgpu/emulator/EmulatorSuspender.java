package dev.vgpu.emulator;

import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.spi.ProcessSuspender;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;

/**
 * Suspends processes on emulated GPUs. It needs no driver in this process: the state that the
 * emulated GPUs share says all. Safe for use by several threads, and by several processes at once.
 */
public final class EmulatorSuspender implements ProcessSuspender {
  private static final String NAME = "emulator";

  private final NativeLibraryFile library;
  private boolean loaded;

  /** Makes one for the environment of this process. */
  public EmulatorSuspender() {
    this(System.getenv());
  }

  /**
   * Makes one for an environment. The native part reads the process's own all the same.
   *
   * @param environment variables by name
   */
  EmulatorSuspender(Map<String, String> environment) {
    EmulatorSettings settings =
        EmulatorSettings.from(Objects.requireNonNull(environment, "environment"));
    Path libraries = settings.libraryDirectory(MountTable.ofThisProcess());
    this.library = new NativeLibraryFile("libvgpu_suspend.so", libraries);
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public boolean serves(PhysicalGpu gpu) {
    return gpu.provider().equals(NAME);
  }

  @Override
  public void suspend(long pid, Duration timeout) {
    load();
    check("suspended", pid, timeout, NativeSuspension.suspend(pid, timeout.toNanos()));
  }

  @Override
  public void resume(long pid, Duration timeout) {
    load();
    check("resumed", pid, timeout, NativeSuspension.resume(pid, timeout.toNanos()));
  }

  @Override
  public boolean isSuspended(long pid) {
    load();
    return NativeSuspension.look(pid) == NativeSuspension.DONE;
  }

  private synchronized void load() {
    if (!loaded) {
      Path file = library.path();
      try {
        System.load(file.toString());
      } catch (UnsatisfiedLinkError e) {
        throw new VgpuException(
            "the emulator's native part cannot be loaded: file=" + file + ": " + e.getMessage(), e);
      }
      loaded = true;
    }
  }

  private static void check(String what, long pid, Duration timeout, int result) {
    if (result != NativeSuspension.DONE) {
      throw new VgpuException(
          "a process cannot be " + what + ": " + reason(result, timeout) + ": pid=" + pid);
    }
  }

  private static String reason(int result, Duration timeout) {
    return switch (result) {
      case NativeSuspension.NO_PROCESS -> "it does not use the emulated GPUs, or is gone";
      case NativeSuspension.TIMEOUT -> "not within " + timeout.toMillis() + " ms (is it stopped?)";
      case NativeSuspension.NO_MEMORY -> "its GPU has no room for its memory now";
      default -> "the emulated GPUs cannot be used from here (VGPU_EMULATOR_LOG=1 says why)";
    };
  }
}
