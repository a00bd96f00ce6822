package dev.vgpu.cuda.pages;

/** Wakes threads that wait on a word of shared memory. Must not block. */
public interface Wake {
  /** Ends waking. */
  default void close() {}

  /** Prepares on another thread; returns at once. */
  default void prepare() {}

  /**
   * Wakes every thread that waits on the word.
   *
   * @param page the shared page
   * @param offset the word's offset
   */
  void all(SharedPage page, int offset);
}
