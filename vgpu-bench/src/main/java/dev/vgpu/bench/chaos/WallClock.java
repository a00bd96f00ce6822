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

/** The time of day as the suite's processes see it. The machine's own clock is not changed. */
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

  /** The environment that makes a process see it. */
  Map<String, String> environment() {
    return Map.of(PRELOAD, library.toString(), FILE, file.toString());
  }

  /**
   * Moves the time of day from now on.
   *
   * @param seconds how much later than the machine's own; negative for earlier
   */
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
