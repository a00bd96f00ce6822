package dev.vgpu.cuda.pages;

/** Wakes what waits on a word of shared memory. Must not block. */
public interface Wake {
  /** Nobody is woken any more. */
  default void close() {}

  /** Gets ready, beside the caller, which goes on at once. */
  default void prepare() {}

  /**
   * Wakes every thread that waits there.
   *
   * @param page the shared page
   * @param offset where the word is
   */
  void all(SharedPage page, int offset);
}
