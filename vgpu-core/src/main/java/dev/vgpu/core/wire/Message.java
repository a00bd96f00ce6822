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
 * One message between two processes of a node: named values. On the wire: the length of what
 * follows (4 bytes), the number of pairs (2 bytes), then each name and value as {@link
 * DataOutputStream#writeUTF} writes them. What comes from the wire is not trusted: reading a value
 * that is missing or makes no sense throws {@link MalformedMessageException}. Confined to one
 * thread until it is sent.
 */
public final class Message {
  /** What a pair takes beside its text: two strings with their arrays, and a place in the map. */
  private static final int PAIR_HEAP_BYTES = 160;

  /** What two bytes can count. */
  private static final int MOST_PAIRS = 65_535;

  private static final int MOST_CHARACTERS = 20_000;
  private static final String TYPE = "type";

  private final Map<String, String> values = new LinkedHashMap<>();

  private int bytes;

  private Message() {}

  /**
   * Makes one.
   *
   * @param type what it says
   */
  public Message(String type) {
    values.put(TYPE, type);
  }

  /** {@return what it says} */
  public String type() {
    return text(TYPE);
  }

  /**
   * Adds a value. One that is too long for a message is cut off.
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
   * @param prefix is put before each name
   * @param more names and values
   * @return this message
   */
  public Message with(String prefix, Map<String, String> more) {
    more.forEach((name, value) -> with(prefix + name, value));
    return this;
  }

  /**
   * {@return a value}
   *
   * @param name its name
   */
  public String text(String name) {
    String value = values.get(name);
    if (value == null) {
      throw new MalformedMessageException("a value is missing: " + name);
    }
    return value;
  }

  /**
   * {@return a value, if there is one}
   *
   * @param name its name
   */
  public Optional<String> find(String name) {
    return Optional.ofNullable(values.get(name));
  }

  /**
   * {@return a number}
   *
   * @param name its name
   */
  public long number(String name) {
    try {
      return Long.parseLong(text(name));
    } catch (NumberFormatException e) {
      throw new MalformedMessageException("not a number: " + name + "=" + text(name), e);
    }
  }

  /**
   * {@return whether it says {@code true}}
   *
   * @param name its name
   */
  public boolean flag(String name) {
    return text(name).equals("true");
  }

  /**
   * {@return the values whose names begin with this, without it}
   *
   * @param prefix the beginning
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

  /** {@return how long it was on the wire; 0 if it has not come from there} */
  public int bytes() {
    return bytes;
  }

  /** {@return about how many bytes of the heap it takes, once it was received} */
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
