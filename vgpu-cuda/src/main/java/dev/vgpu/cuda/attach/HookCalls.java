package dev.vgpu.cuda.attach;

import com.sun.jna.NativeLong;
import com.sun.jna.Pointer;

/** The functions that the hook exports in addition to the driver's: {@code top/top.h}. */
final class HookCalls {
  /** Returned by {@link #vgpu_tenant_add} if the process is already under that lease. */
  static final long UNDER_IT_ALREADY = -2;

  private HookCalls() {}

  static native long vgpu_tenant_add(Pointer environment, Pointer reason, NativeLong reasonSize);

  static native long vgpu_tenant_bind(long handle);

  static native int vgpu_tenant_drop(long handle);
}
