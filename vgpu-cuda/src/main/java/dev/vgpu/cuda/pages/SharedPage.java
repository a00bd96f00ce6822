package dev.vgpu.cuda.pages;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Memory that several processes share, read and written field by field. Loads acquire and stores
 * release, which is what the strongest order in {@code vgpu_shm.def} asks for and costs nothing
 * here; {@code cas} fields go through {@link #compareAndSet}. Safe for use by several threads.
 */
public class SharedPage {
  private static final VarHandle INTS =
      MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONGS =
      MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private final ByteBuffer buffer;

  /** Memory that is mapped, and stays so as long as the buffer is reachable. */
  public SharedPage(ByteBuffer buffer) {
    this.buffer = buffer;
  }

  /** The memory itself, for its address. */
  public ByteBuffer buffer() {
    return buffer;
  }

  /** {@return the 32 bits at a multiple of four} */
  public int intAt(int offset) {
    return (int) INTS.getAcquire(buffer, offset);
  }

  /** {@return the 64 bits at a multiple of eight} */
  public long longAt(int offset) {
    return (long) LONGS.getAcquire(buffer, offset);
  }

  /** Writes 32 bits at a multiple of four. */
  public void setInt(int offset, int value) {
    INTS.setRelease(buffer, offset, value);
  }

  /** Writes 64 bits at a multiple of eight. */
  public void setLong(int offset, long value) {
    LONGS.setRelease(buffer, offset, value);
  }

  boolean compareAndSet(int offset, long expected, long value) {
    return LONGS.compareAndSet(buffer, offset, expected, value);
  }

  /** Sets a part of it to zero; offset and length are multiples of eight. */
  void clear(int offset, int length) {
    for (int at = offset; at < offset + length; at += Long.BYTES) {
      setLong(at, 0);
    }
  }
}
