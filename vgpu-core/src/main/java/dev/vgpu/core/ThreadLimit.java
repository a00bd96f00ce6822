package dev.vgpu.core;

import dev.vgpu.VgpuException;

/** What is said when the system gives no more threads. */
public final class ThreadLimit {
  private ThreadLimit() {}

  /**
   * {@return what the caller throws instead}
   *
   * @param what cannot be done, for example "no pool can be opened"
   * @param e what a start of a thread threw
   * @throws OutOfMemoryError the same, if it is memory that is lacking
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
