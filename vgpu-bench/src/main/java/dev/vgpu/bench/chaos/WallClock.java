package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.Node;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;

/** The time of day as the suite's processes see it; the machine's own clock is left alone. */
final class WallClock {
  static final String PRELOAD = "LD_PRELOAD";
  private static final String FILE = "VGPU_CHAOS_CLOCK";

  private final Path file;
  private final Path library;

  WallClock(Node node) throws InterruptedException {
    this.file = node.file("clock");
    this.library = node.library("clock_step");
    try {
      Files.write(file, new byte[Long.BYTES]);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + file, e);
    }
  }

  /** What makes a process see it. */
  Map<String, String> environment() {
    return Map.of(PRELOAD, library.toString(), FILE, file.toString());
  }

  /** From now on it is so many seconds later, or earlier, than it is. */
  void step(long seconds) {
    ByteBuffer bytes = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    bytes.putLong(0, seconds);
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      channel.write(bytes, 0);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + file, e);
    }
  }
}
