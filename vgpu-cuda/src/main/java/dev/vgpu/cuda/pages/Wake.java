package dev.vgpu.cuda.pages;

import java.util.Optional;

/** Wakes threads that wait on a word of shared memory. Must not block. */
public interface Wake {
  /** Ends waking. */
  default void close() {}

  /** Prepares on another thread; returns at once. */
  default void prepare() {}

  /**
   * {@return a list of words that change when the calling thread ends; empty: not yet, or not here}
   *
   * @param offset where the word is, on every page
   */
  default Optional<RobustWords> ofThisThread(int offset) {
    return Optional.empty();
  }

  /**
   * Wakes every thread that waits on the word.
   *
   * @param page the shared page
   * @param offset the word's offset
   */
  void all(SharedPage page, int offset);
}
