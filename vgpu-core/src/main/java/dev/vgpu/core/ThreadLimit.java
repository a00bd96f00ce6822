package dev.vgpu.core;

import dev.vgpu.VgpuException;

/** The exception for a system that refuses to start another thread. */
public final class ThreadLimit {
  private ThreadLimit() {}

  /**
   * {@return the exception for the caller to throw instead}
   *
   * @param what what cannot be done, for example "no pool can be opened"
   * @param e the error that starting a thread threw
   * @throws OutOfMemoryError {@code e} itself, if memory and not the number of threads is the limit
   */
  public static VgpuException refusal(String what, OutOfMemoryError e) {
    if (!String.valueOf(e.getMessage()).contains("native thread")) {
      throw e;
    }
    return new VgpuException(
        what
            + ": the system gives no more threads; raise the limit of this user's processes"
            + " (ulimit -u) or of the container's (pids)",
        e);
  }
}
