package dev.vgpu.onnxruntime;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;

/** Writes ONNX models of matrix products, by the field numbers of onnx.proto. */
final class TestModel {
  private static final int FLOAT = 1;

  private TestModel() {}

  /**
   * Inputs {@code x} (any rows, any columns) and {@code w}; output {@code y}: x multiplied by w the
   * given number of times.
   */
  static byte[] product(int times) {
    ByteArrayOutputStream graph = new ByteArrayOutputStream();
    for (int i = 0; i < times; i++) {
      String in = i == 0 ? "x" : "t" + i;
      String out = i == times - 1 ? "y" : "t" + (i + 1);
      ByteArrayOutputStream node = new ByteArrayOutputStream();
      text(node, 1, in);
      text(node, 1, "w");
      text(node, 2, out);
      text(node, 3, "n" + i);
      text(node, 4, "MatMul");
      bytes(graph, 1, node.toByteArray());
    }
    text(graph, 2, "products");
    bytes(graph, 11, matrix("x"));
    bytes(graph, 11, matrix("w"));
    bytes(graph, 12, matrix("y"));
    ByteArrayOutputStream opset = new ByteArrayOutputStream();
    number(opset, 2, 13);
    ByteArrayOutputStream model = new ByteArrayOutputStream();
    number(model, 1, 8);
    bytes(model, 7, graph.toByteArray());
    bytes(model, 8, opset.toByteArray());
    return model.toByteArray();
  }

  private static byte[] matrix(String name) {
    ByteArrayOutputStream shape = new ByteArrayOutputStream();
    for (String dimension : new String[] {"rows", "columns"}) {
      ByteArrayOutputStream dim = new ByteArrayOutputStream();
      text(dim, 2, name + dimension);
      bytes(shape, 1, dim.toByteArray());
    }
    ByteArrayOutputStream tensor = new ByteArrayOutputStream();
    number(tensor, 1, FLOAT);
    bytes(tensor, 2, shape.toByteArray());
    ByteArrayOutputStream type = new ByteArrayOutputStream();
    bytes(type, 1, tensor.toByteArray());
    ByteArrayOutputStream value = new ByteArrayOutputStream();
    text(value, 1, name);
    bytes(value, 2, type.toByteArray());
    return value.toByteArray();
  }

  private static void text(ByteArrayOutputStream out, int field, String value) {
    bytes(out, field, value.getBytes(StandardCharsets.UTF_8));
  }

  private static void bytes(ByteArrayOutputStream out, int field, byte[] value) {
    varint(out, field << 3 | 2);
    varint(out, value.length);
    out.writeBytes(value);
  }

  private static void number(ByteArrayOutputStream out, int field, long value) {
    varint(out, (long) field << 3);
    varint(out, value);
  }

  private static void varint(ByteArrayOutputStream out, long value) {
    long rest = value;
    while (rest > 0x7f) {
      out.write((int) ((rest & 0x7f) | 0x80));
      rest >>>= 7;
    }
    out.write((int) rest);
  }
}
