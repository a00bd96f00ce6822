package dev.vgpu.core.disk;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.HexFormat;

/**
 * A random text by which a process proves to each holder of the seat that a lease is its own: its
 * number and its start, which it also says, everybody can read. It is in the memory of that process
 * and is told to the seat alone. What the seat keeps and writes down is the {@link #key}, by which
 * the text can be recognised and not found. Immutable.
 */
public final class OwnerSecret {
  private static final int BYTES = 32;
  private static final Path RANDOM = Path.of("/dev/urandom");

  private final String text;

  private OwnerSecret(String text) {
    this.text = text;
  }

  /** {@return a new one} */
  public static OwnerSecret random() {
    return new OwnerSecret(HexFormat.of().formatHex(randomBytes()));
  }

  /** Not by {@link SecureRandom} where that can be helped: its providers take long to load. */
  private static byte[] randomBytes() {
    try (InputStream in = Files.newInputStream(RANDOM)) {
      byte[] bytes = in.readNBytes(BYTES);
      if (bytes.length == BYTES) {
        return bytes;
      }
    } catch (IOException e) {
      // There is another way.
    }
    byte[] bytes = new byte[BYTES];
    new SecureRandom().nextBytes(bytes);
    return bytes;
  }

  /** {@return what is told to the seat} */
  public String text() {
    return text;
  }

  /** {@return what it is recognised by} */
  public String key() {
    return key(text);
  }

  /**
   * {@return what a text is recognised by}
   *
   * @param text as a process has told it
   */
  public static String key(String text) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      return HexFormat.of().formatHex(digest.digest(text.getBytes(StandardCharsets.UTF_8)));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("each Java platform has SHA-256", e);
    }
  }

  /** {@return nothing of it} */
  @Override
  public String toString() {
    return "a secret";
  }
}
