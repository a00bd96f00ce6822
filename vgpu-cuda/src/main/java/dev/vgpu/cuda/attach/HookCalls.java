package dev.vgpu.cuda.attach;

import com.sun.jna.NativeLong;
import com.sun.jna.Pointer;

/** What the hook in this process exports beside the driver's functions: top/top.h. */
final class HookCalls {
  /** What {@link #vgpu_tenant_add} answers for a lease that the process is under. */
  static final long UNDER_IT_ALREADY = -2;

  private HookCalls() {}

  static native long vgpu_tenant_add(Pointer environment, Pointer reason, NativeLong reasonSize);

  static native long vgpu_tenant_bind(long handle);

  static native int vgpu_tenant_drop(long handle);
}
