package dev.vgpu.emulator;

/** The functions of {@code libvgpu_suspend.so}; it has to be loaded before. */
final class NativeSuspension {
  // What suspend.h returns.
  static final int DONE = 0;
  static final int NO_PROCESS = 1;
  static final int TIMEOUT = 2;
  static final int NO_MEMORY = 3;

  private NativeSuspension() {}

  static native int suspend(long pid, long timeoutNs);

  static native int resume(long pid, long timeoutNs);

  static native int look(long pid);
}
