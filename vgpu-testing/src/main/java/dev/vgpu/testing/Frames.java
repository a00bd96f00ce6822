package dev.vgpu.testing;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Encodes the seat's messages according to the protocol, without the product's code. */
public final class Frames {
  private static final List<String> COUNTS =
      List.of(
          "gpuNs",
          "calls",
          "preemptions",
          "running",
          "waiting",
          "reserved",
          "used",
          "processes",
          "launches",
          "denied");

  private Frames() {}

  /** {@return the frame of one message} */
  public static ByteBuffer of(String... namesAndValues) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeShort(namesAndValues.length / 2);
    for (String text : namesAndValues) {
      out.writeUTF(text);
    }
    ByteBuffer frame = ByteBuffer.allocate(4 + bytes.size());
    return frame.putInt(bytes.size()).put(bytes.toByteArray()).flip();
  }

  /** {@return the frame with which this process says to the seat who it is} */
  public static ByteBuffer hello(String secret) throws IOException {
    String stat = Files.readString(Path.of("/proc/self/stat"));
    String[] afterName = stat.substring(stat.lastIndexOf(')') + 2).split(" ", -1);
    List<String> pairs = new ArrayList<>(List.of("type", "hello", "number", "1", "version", "2"));
    pairs.addAll(List.of("pid", "" + ProcessHandle.current().pid(), "start", afterName[19]));
    pairs.addAll(List.of("secret", secret));
    return of(pairs.toArray(new String[0]));
  }

  /**
   * {@return the frame of a message that asks for a virtual GPU with the least terms}
   *
   * @param type {@code acquire} or {@code claim}
   * @param number of the message
   * @param lease the id of the lease to claim
   * @param gpu the id of the GPU that it is on
   */
  public static ByteBuffer wanting(String type, int number, String lease, String gpu)
      throws IOException {
    List<String> pairs = new ArrayList<>(List.of("type", type, "number", "" + number));
    pairs.addAll(List.of("lease", lease, "gpu", gpu, "turn", "0", "runs", "false"));
    pairs.addAll(List.of("waits", "false", "attached", "false"));
    pairs.addAll(List.of("request.name", "any", "request.memory", "1", "request.calls", "1"));
    pairs.addAll(List.of("request.policy", "BEST_EFFORT", "request.class", "OFFLINE"));
    pairs.addAll(List.of("request.failure", "REFUSE", "request.requires.worksFor", ""));
    for (String feature : List.of("memory", "compute", "preemption", "isolation")) {
      pairs.addAll(List.of("request.requires." + feature, "NONE"));
    }
    for (String count : COUNTS) {
      pairs.addAll(List.of("usage." + count, "0"));
    }
    return of(pairs.toArray(new String[0]));
  }

  /** Reads one frame as text, including the bytes between its values. */
  public static String read(SocketChannel channel) throws IOException {
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
