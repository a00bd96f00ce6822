package dev.vgpu.dashboard;

import org.jspecify.annotations.Nullable;

/**
 * Writes compact JSON: line breaks occur only escaped, in strings. The caller ends what it begins.
 * Not safe for several threads.
 */
final class JsonText {
  private static final String HEX = "0123456789abcdef";
  private static final int LEAST_PLAIN = ' ';

  private final StringBuilder text = new StringBuilder();
  private boolean isFirst = true;

  /** Begins an object: the whole, or an element of an array. */
  JsonText object() {
    return begin('{');
  }

  /** Begins an object as a member of an object. */
  JsonText object(String name) {
    return name(name).begin('{');
  }

  JsonText endObject() {
    return end('}');
  }

  /** Begins an array as a member of an object. */
  JsonText array(String name) {
    return name(name).begin('[');
  }

  JsonText endArray() {
    return end(']');
  }

  JsonText put(String name, @Nullable String value) {
    return name(name).add(value);
  }

  JsonText put(String name, long value) {
    return name(name).add(value);
  }

  JsonText put(String name, double value) {
    return name(name).add(value);
  }

  JsonText put(String name, boolean value) {
    return name(name).json(String.valueOf(value));
  }

  JsonText putNull(String name) {
    return name(name).json("null");
  }

  /** Adds a member whose value is JSON already. */
  JsonText putJson(String name, String json) {
    return name(name).json(json);
  }

  JsonText add(@Nullable String value) {
    if (value == null) {
      return json("null");
    }
    separate();
    quote(value);
    return this;
  }

  JsonText add(long value) {
    separate();
    text.append(value);
    return this;
  }

  /** Adds a number; null if it is not one. */
  JsonText add(double value) {
    return json(Double.isFinite(value) ? Double.toString(value) : "null");
  }

  /** Adds an element that is JSON already. */
  JsonText json(String json) {
    separate();
    text.append(json);
    return this;
  }

  private JsonText name(String name) {
    separate();
    quote(name);
    text.append(':');
    isFirst = true;
    return this;
  }

  private JsonText begin(char bracket) {
    separate();
    text.append(bracket);
    isFirst = true;
    return this;
  }

  private JsonText end(char bracket) {
    text.append(bracket);
    isFirst = false;
    return this;
  }

  private void separate() {
    if (!isFirst) {
      text.append(',');
    }
    isFirst = false;
  }

  private void quote(String value) {
    text.append('"');
    for (int i = 0; i < value.length(); i++) {
      char each = value.charAt(i);
      if (each == '"' || each == '\\') {
        text.append('\\').append(each);
      } else if (each < LEAST_PLAIN) {
        text.append("\\u00").append(HEX.charAt(each >> 4)).append(HEX.charAt(each & 15));
      } else {
        text.append(each);
      }
    }
    text.append('"');
  }

  @Override
  public String toString() {
    return text.toString();
  }
}
