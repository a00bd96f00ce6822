package dev.vgpu.dashboard;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HexFormat;

/** The secret that grants access to the dashboard. Immutable; only {@link #text} reveals it. */
public final class Token {
  /** The least number of characters. */
  public static final int LEAST_LENGTH = 16;

  private static final int RANDOM_BYTES = 16;
  private static final String BEARER = "Bearer ";

  private final String text;
  private final byte[] digest;

  private Token(String text) {
    this.text = text;
    this.digest = digest(text);
  }

  /** {@return a new random token} */
  public static Token random() {
    byte[] bytes = new byte[RANDOM_BYTES];
    new SecureRandom().nextBytes(bytes);
    return new Token(HexFormat.of().formatHex(bytes));
  }

  /**
   * {@return a token that a user chose}
   *
   * @param text its text; white space around it does not count, such as a file's last line break
   * @throws IllegalArgumentException if it is shorter than {@value #LEAST_LENGTH} characters
   */
  public static Token of(String text) {
    String secret = text.strip();
    if (secret.length() < LEAST_LENGTH) {
      throw new IllegalArgumentException(
          "a token has at least " + LEAST_LENGTH + " characters; this one has " + secret.length());
    }
    return new Token(secret);
  }

  /** {@return the secret itself} */
  public String text() {
    return text;
  }

  /** Compares in constant time. */
  boolean is(String given) {
    return MessageDigest.isEqual(digest, digest(given));
  }

  /** Whether an {@code Authorization} header carries this token. */
  boolean isGivenBy(String header) {
    return header.startsWith(BEARER) && is(header.substring(BEARER.length()).strip());
  }

  /** {@return what a browser stores instead of the token} */
  String cookieValue() {
    return HexFormat.of().formatHex(digest);
  }

  /** Whether a {@code Cookie} header carries this token's {@link #cookieValue}. */
  boolean isKeptBy(String header, String cookieName) {
    return Arrays.stream(header.split(";"))
        .map(String::strip)
        .filter(each -> each.startsWith(cookieName + "="))
        .map(each -> each.substring(cookieName.length() + 1))
        .anyMatch(
            value -> MessageDigest.isEqual(value.getBytes(UTF_8), cookieValue().getBytes(UTF_8)));
  }

  private static byte[] digest(String text) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(("vgpu " + text).getBytes(UTF_8));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }
}
