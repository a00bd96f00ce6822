package dev.vgpu.core.pool;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

/** Encodes the seat's messages according to the protocol, without the product's code. */
final class Frames {
  private Frames() {}

  static ByteBuffer of(String... namesAndValues) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeShort(namesAndValues.length / 2);
    for (String text : namesAndValues) {
      out.writeUTF(text);
    }
    ByteBuffer frame = ByteBuffer.allocate(4 + bytes.size());
    return frame.putInt(bytes.size()).put(bytes.toByteArray()).flip();
  }

  /** Reads one frame as text, including the bytes between its values. */
  static String read(SocketChannel channel) throws IOException {
    ByteBuffer length = ByteBuffer.allocate(4);
    while (length.hasRemaining() && channel.read(length) >= 0) {
      Thread.onSpinWait();
    }
    ByteBuffer frame = ByteBuffer.allocate(length.getInt(0));
    while (frame.hasRemaining() && channel.read(frame) >= 0) {
      Thread.onSpinWait();
    }
    return new String(frame.array(), StandardCharsets.UTF_8);
  }
}
