package dev.vgpu.memory;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Measures the peak of this process's resident memory, which Linux lets a process reset (proc(5),
 * {@code clear_refs}). It is an estimate, because it includes memory that other threads allocate
 * meanwhile. Without that file, it measures nothing.
 */
final class ResidentMemoryMeter implements MemoryMeter {
  private final Path status;
  private final Path clearRefs;
  private long beganBytes;

  ResidentMemoryMeter(Path status, Path clearRefs) {
    this.status = status;
    this.clearRefs = clearRefs;
  }

  @Override
  public void loaded() {}

  @Override
  public void begin() {
    beganBytes = 0;
    try {
      Files.writeString(clearRefs, "5", StandardCharsets.US_ASCII);
      beganBytes = bytes("VmRSS:");
    } catch (IOException e) {
      beganBytes = 0; // not Linux, or not allowed
    }
  }

  @Override
  public long peakBytes() {
    if (beganBytes == 0) {
      return 0;
    }
    try {
      return Math.max(0, bytes("VmHWM:") - beganBytes);
    } catch (IOException e) {
      return 0;
    }
  }

  private long bytes(String key) throws IOException {
    for (String line : Files.readAllLines(status, StandardCharsets.US_ASCII)) {
      if (line.startsWith(key)) {
        return Long.parseLong(line.substring(key.length()).replace("kB", "").strip()) * 1024;
      }
    }
    return 0;
  }
}
