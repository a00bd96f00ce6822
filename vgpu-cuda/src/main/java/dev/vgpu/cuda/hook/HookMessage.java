package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.LAYOUT_MAJOR;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_VERSION;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_WELCOME;
import static dev.vgpu.cuda.layout.ShmLayout.NO_SLOT;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_BAD;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_FULL;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_SECRET;

import dev.vgpu.cuda.layout.ShmLayout.Message;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * A message on the hook's socket. Immutable.
 *
 * @param type {@code MESSAGE_}
 * @param version the sender's {@code MESSAGE_VERSION}
 * @param slot a slot's number, or {@code NO_SLOT}
 * @param status {@code STATUS_}
 * @param pid the process, in its own namespace
 * @param layoutMajor the sender's {@code LAYOUT_MAJOR}
 * @param startTime the process's
 * @param pidNamespace the process's
 * @param lease the lease's id
 * @param text of a HELLO: the secrets; of a WELCOME: the slot's secret, or the reason of a refusal
 */
public record HookMessage(
    int type,
    int version,
    int slot,
    int status,
    long pid,
    int layoutMajor,
    long startTime,
    long pidNamespace,
    String lease,
    String text) {

  /** Answers a HELLO. */
  static HookMessage welcome(int slot, int status, String text) {
    return new HookMessage(
        MESSAGE_WELCOME, MESSAGE_VERSION, slot, status, 0, LAYOUT_MAJOR, 0, 0, "", text);
  }

  /** Answers a process that gets no slot: none is free, or it asked for one that is not its own. */
  static HookMessage noSlot(boolean fresh) {
    return fresh
        ? welcome(NO_SLOT, STATUS_FULL, "the virtual GPU has reached its limit of processes")
        : welcome(NO_SLOT, STATUS_BAD, "the slot is not of this process");
  }

  /** Answers a process that did not name the required secrets. */
  static HookMessage noSecret(boolean fresh) {
    return welcome(
        NO_SLOT,
        STATUS_SECRET,
        fresh
            ? "the hook did not send the lease's secret: it is an older version, or belongs to another"
                + " lease"
            : "the slot is not of this process");
  }

  /** Reads a message at a buffer's position, which stays unchanged. */
  public static HookMessage read(ByteBuffer buffer) {
    ByteBuffer bytes = buffer.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    int at = bytes.position();
    return new HookMessage(
        bytes.getInt(at + Message.TYPE),
        bytes.getInt(at + Message.VERSION),
        bytes.getInt(at + Message.SLOT_NUMBER),
        bytes.getInt(at + Message.STATUS),
        Integer.toUnsignedLong(bytes.getInt(at + Message.PID)),
        bytes.getInt(at + Message.LAYOUT_MAJOR),
        bytes.getLong(at + Message.START_TIME),
        bytes.getLong(at + Message.PID_NAMESPACE),
        text(bytes, at + Message.LEASE, Message.LEASE_LENGTH),
        text(bytes, at + Message.TEXT, Message.TEXT_LENGTH));
  }

  /** {@return the encoded message} */
  public ByteBuffer bytes() {
    ByteBuffer buffer = ByteBuffer.allocate(Message.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    buffer.putInt(Message.TYPE, type);
    buffer.putInt(Message.VERSION, version);
    buffer.putInt(Message.SLOT_NUMBER, slot);
    buffer.putInt(Message.STATUS, status);
    buffer.putInt(Message.PID, (int) pid);
    buffer.putInt(Message.LAYOUT_MAJOR, layoutMajor);
    buffer.putLong(Message.START_TIME, startTime);
    buffer.putLong(Message.PID_NAMESPACE, pidNamespace);
    put(buffer, Message.LEASE, Message.LEASE_LENGTH, lease);
    put(buffer, Message.TEXT, Message.TEXT_LENGTH, text);
    return buffer;
  }

  private static void put(ByteBuffer buffer, int offset, int length, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    buffer.put(offset, bytes, 0, Math.min(bytes.length, length - 1));
  }

  /** Reads text up to a zero or the end of the field. */
  private static String text(ByteBuffer buffer, int offset, int length) {
    byte[] bytes = new byte[length];
    buffer.get(offset, bytes);
    int end = 0;
    while (end < length && bytes[end] != 0) {
      end++;
    }
    return new String(bytes, 0, end, StandardCharsets.UTF_8);
  }
}
