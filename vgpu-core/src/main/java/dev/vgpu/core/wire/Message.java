package dev.vgpu.core.wire;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/**
 * A message between two processes of a node: named values. On the wire: the length of what follows
 * (4 bytes), the number of pairs (2 bytes), then each name and value as {@link
 * DataOutputStream#writeUTF} writes them. Received messages are not trusted: reading a value that
 * is missing or malformed throws {@link MalformedMessageException}. Confined to one thread until it
 * is sent.
 */
public final class Message {
  /** The heap size of a pair without its text: two strings with their arrays, and a map entry. */
  private static final int PAIR_HEAP_BYTES = 160;

  /** The largest number that fits in two bytes. */
  private static final int MOST_PAIRS = 65_535;

  private static final int MOST_CHARACTERS = 20_000;
  private static final String TYPE = "type";

  private final Map<String, String> values = new LinkedHashMap<>();

  private int bytes;

  private Message() {}

  /**
   * Creates a message.
   *
   * @param type its type
   */
  public Message(String type) {
    values.put(TYPE, type);
  }

  /** {@return its type} */
  public String type() {
    return text(TYPE);
  }

  /**
   * Adds a value. A value that is too long is truncated.
   *
   * @param name its name
   * @param value a text or a number
   * @return this message
   */
  public Message with(String name, Object value) {
    String text = value.toString();
    values.put(name, text.length() > MOST_CHARACTERS ? text.substring(0, MOST_CHARACTERS) : text);
    return this;
  }

  /**
   * Adds values.
   *
   * @param prefix a prefix for each name
   * @param more names and values
   * @return this message
   */
  public Message with(String prefix, Map<String, String> more) {
    more.forEach((name, value) -> with(prefix + name, value));
    return this;
  }

  /**
   * {@return the value with a name}
   *
   * @param name the name
   * @throws MalformedMessageException if there is none
   */
  public String text(String name) {
    String value = values.get(name);
    if (value == null) {
      throw new MalformedMessageException("a value is missing: " + name);
    }
    return value;
  }

  /**
   * {@return the value with a name, if there is one}
   *
   * @param name the name
   */
  public Optional<String> find(String name) {
    return Optional.ofNullable(values.get(name));
  }

  /**
   * {@return the value with a name, as a number}
   *
   * @param name the name
   * @throws MalformedMessageException if there is none, or it is not a number
   */
  public long number(String name) {
    try {
      return Long.parseLong(text(name));
    } catch (NumberFormatException e) {
      throw new MalformedMessageException("not a number: " + name + "=" + text(name), e);
    }
  }

  /**
   * {@return whether the value with a name is {@code true}}
   *
   * @param name the name
   * @throws MalformedMessageException if there is none
   */
  public boolean flag(String name) {
    return text(name).equals("true");
  }

  /**
   * {@return the values whose names start with a prefix; the prefix is removed from the names}
   *
   * @param prefix the prefix
   */
  public Map<String, String> under(String prefix) {
    Map<String, String> found = new LinkedHashMap<>();
    values.forEach(
        (name, value) -> {
          if (name.startsWith(prefix)) {
            found.put(name.substring(prefix.length()), value);
          }
        });
    return found;
  }

  /** {@return its length on the wire, in bytes, if it was received; otherwise 0} */
  public int bytes() {
    return bytes;
  }

  /** {@return the approximate heap size of a received message, in bytes} */
  public long heapBytes() {
    return 2L * bytes + (long) PAIR_HEAP_BYTES * values.size();
  }

  ByteBuffer encode() {
    if (values.size() > MOST_PAIRS) {
      throw new IllegalStateException("a message has too many values: type=" + type());
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(256);
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeInt(0);
      out.writeShort(values.size());
      for (Map.Entry<String, String> entry : values.entrySet()) {
        out.writeUTF(entry.getKey());
        out.writeUTF(entry.getValue());
      }
    } catch (IOException e) {
      throw new UncheckedIOException("a message cannot be written: type=" + type(), e);
    }
    ByteBuffer buffer = ByteBuffer.wrap(bytes.toByteArray());
    return buffer.putInt(0, buffer.limit() - Integer.BYTES);
  }

  static Message decode(byte[] frame) {
    return decode(frame, MOST_PAIRS);
  }

  static Message decode(byte[] frame, int mostPairs) {
    Message message = new Message();
    message.bytes = frame.length;
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(frame))) {
      int pairs = in.readUnsignedShort();
      if (pairs > mostPairs) {
        throw new MalformedMessageException("too many values: " + pairs);
      }
      for (int i = 0; i < pairs; i++) {
        message.values.put(in.readUTF(), in.readUTF());
      }
      if (in.read() >= 0) {
        throw new MalformedMessageException("more bytes than values");
      }
    } catch (IOException e) {
      throw new MalformedMessageException("not a message: " + e, e);
    }
    message.text(TYPE);
    return message;
  }

  /** {@return its values, for logs} */
  @Override
  public String toString() {
    return values.toString();
  }
}
