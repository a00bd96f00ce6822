package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.Node;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Fills the file system of the run directory to its last block, and frees it again. */
public final class FullDisk {
  private static final int CHUNK = 1 << 20;
  private static final int SMALLEST = 512;

  private final Path ballast;
  private final boolean possible;

  /** Fills nothing yet. */
  public FullDisk(Node node, boolean possible) {
    this.ballast = node.runDirectory().resolve("ballast");
    this.possible = possible;
  }

  /** {@return whether the run directory has a file system of its own} */
  public boolean isPossible() {
    return possible;
  }

  /** Takes all room that is left. */
  public void fill() {
    try (FileChannel channel =
        FileChannel.open(ballast, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
      for (int size = CHUNK; size >= SMALLEST; size /= 2) {
        append(channel, size);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + ballast, e);
    }
  }

  private static void append(FileChannel channel, int size) {
    try {
      while (channel.write(ByteBuffer.allocate(size)) == size) {
        // Writes until there is no room for a block of this size.
      }
    } catch (IOException e) {
      // The disk is full.
    }
  }

  /** Gives the room back. */
  public void free() {
    try {
      Files.deleteIfExists(ballast);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot delete " + ballast, e);
    }
  }
}
