package dev.vgpu;

/**
 * The right to use the GPU, held from {@link VirtualGpu#enter()} until {@link #close()}.
 *
 * <p>The turn belongs to the virtual GPU: several threads may hold a {@code GpuTurn} of one virtual
 * GPU together. Entering again on the same thread gives a nested one at once. Safe for use by
 * several threads; may be closed by a thread other than the one that entered. Where the JVM is
 * under its virtual GPUs ({@link VirtualGpu#attachThisJvm}), the thread that entered is bound by
 * it; closed by another thread, it stays so until that thread enters or closes the next.
 */
public interface GpuTurn extends AutoCloseable {
  /**
   * {@return whether another tenant waits and this tenant's time is up} Long work should then close
   * the turn at the next good place and enter again.
   */
  boolean isYieldRequested();

  /** Ends the use. A second call does nothing. */
  @Override
  void close();
}
