package dev.vgpu.cuda.pages;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Memory that several processes share, accessed field by field. Loads are acquire and stores are
 * release. That is the strongest order that {@code vgpu_shm.def} demands of them, and costs nothing
 * here; {@code cas} fields use {@link #compareAndSet}. Safe for use by several threads.
 */
public class SharedPage {
  private static final VarHandle INTS =
      MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONGS =
      MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private final ByteBuffer buffer;

  /** Wraps a mapping, which lasts as long as the buffer is reachable. */
  public SharedPage(ByteBuffer buffer) {
    this.buffer = buffer;
  }

  /** {@return the memory itself, for its address} */
  public ByteBuffer buffer() {
    return buffer;
  }

  /** {@return the 32 bits at an offset that is a multiple of four} */
  public int intAt(int offset) {
    return (int) INTS.getAcquire(buffer, offset);
  }

  /** {@return the 64 bits at an offset that is a multiple of eight} */
  public long longAt(int offset) {
    return (long) LONGS.getAcquire(buffer, offset);
  }

  /** Writes 32 bits at an offset that is a multiple of four. */
  public void setInt(int offset, int value) {
    INTS.setRelease(buffer, offset, value);
  }

  /** Writes 64 bits at an offset that is a multiple of eight. */
  public void setLong(int offset, long value) {
    LONGS.setRelease(buffer, offset, value);
  }

  boolean compareAndSet(int offset, long expected, long value) {
    return LONGS.compareAndSet(buffer, offset, expected, value);
  }

  /** Changes 32 bits from an expected value. Only for a page that the seat alone writes. */
  boolean compareAndSetInt(int offset, int expected, int value) {
    return INTS.compareAndSet(buffer, offset, expected, value);
  }

  /** {@return how often to try a change that others may prevent by theirs} */
  int mostAttempts() {
    return 1_000_000;
  }

  /**
   * Makes a change of a memory ledger that could not be made from here; returns false if it cannot
   * be made, or if that is unknown.
   */
  boolean changeLedger(int word, long delta, long seq, int marks) {
    return false;
  }

  /** Sets a range to zero; offset and length are multiples of eight. */
  void clear(int offset, int length) {
    for (int at = offset; at < offset + length; at += Long.BYTES) {
      setLong(at, 0);
    }
  }
}
