package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.SLOTS_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_SIZE;

import dev.vgpu.cuda.layout.ShmLayout.Slot;
import dev.vgpu.cuda.pages.ReportPage;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** A copy of a report page's slots, as of the last reading. Guarded by the lease's lock. */
final class SlotReadings {
  private final ReportPage report;
  private byte[] bytes = new byte[4 * SLOT_SIZE];
  private ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);

  SlotReadings(ReportPage report) {
    this.report = report;
  }

  /** Reads all slots up to {@code last}. */
  void refresh(int last) {
    int length = (last + 1) * SLOT_SIZE;
    if (bytes.length < length) {
      bytes = new byte[Math.max(length, 2 * bytes.length)];
      buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
    report.read(SLOTS_OFFSET, bytes, length);
  }

  int intAt(int slot, int field) {
    return buffer.getInt(slot * SLOT_SIZE + field);
  }

  long longAt(int slot, int field) {
    return buffer.getLong(slot * SLOT_SIZE + field);
  }

  boolean isBusy(int slot) {
    return intAt(slot, Slot.BUSY) != 0;
  }

  boolean hasWork(int slot) {
    return isBusy(slot) || intAt(slot, Slot.WAITING) != 0;
  }
}
