package dev.vgpu;

/**
 * The right to use the GPU, held from {@link VirtualGpu#enter()} until {@link #close()}.
 *
 * <p>The turn belongs to the virtual GPU: several threads may each hold a {@code GpuTurn} of one
 * virtual GPU at the same time. Entering again on the same thread returns a nested turn at once.
 * Safe for use by several threads; a thread other than the one that entered may close it.
 *
 * <p>If the JVM is under its virtual GPUs ({@link VirtualGpu#attachThisJvm}), entering binds the
 * thread. If another thread closes the turn, the first thread stays bound until it next enters or
 * closes a turn.
 */
public interface GpuTurn extends AutoCloseable {
  /**
   * {@return whether another tenant waits and this tenant's time is up} Long work should then close
   * the turn at the next suitable point and enter again.
   */
  boolean isYieldRequested();

  /** Ends the turn. A second call does nothing. */
  @Override
  void close();
}
