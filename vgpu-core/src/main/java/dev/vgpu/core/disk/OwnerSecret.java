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
 * A random text with which a process proves to each holder of the seat that a lease is its own. The
 * process's pid and start time are not proof, because every process can read them. The secret stays
 * in the memory of its process and is sent to the seat alone. The seat keeps and writes only the
 * {@link #key}, a hash that verifies the secret but does not reveal it. Immutable.
 */
public final class OwnerSecret {
  private static final int BYTES = 32;
  private static final Path RANDOM = Path.of("/dev/urandom");

  private final String text;

  private OwnerSecret(String text) {
    this.text = text;
  }

  /** {@return a new secret} */
  public static OwnerSecret random() {
    return new OwnerSecret(HexFormat.of().formatHex(randomBytes()));
  }

  /** Avoids {@link SecureRandom} where possible, because its providers are slow to load. */
  private static byte[] randomBytes() {
    try (InputStream in = Files.newInputStream(RANDOM)) {
      byte[] bytes = in.readNBytes(BYTES);
      if (bytes.length == BYTES) {
        return bytes;
      }
    } catch (IOException e) {
      // Fall back to SecureRandom.
    }
    byte[] bytes = new byte[BYTES];
    new SecureRandom().nextBytes(bytes);
    return bytes;
  }

  /** {@return the secret itself, for the seat} */
  public String text() {
    return text;
  }

  /** {@return the SHA-256 hash of the secret, in hexadecimal} */
  public String key() {
    return key(text);
  }

  /**
   * {@return the SHA-256 hash of a secret, in hexadecimal}
   *
   * @param text the secret that a process sent
   */
  public static String key(String text) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      return HexFormat.of().formatHex(digest.digest(text.getBytes(StandardCharsets.UTF_8)));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("each Java platform has SHA-256", e);
    }
  }

  /** {@return a fixed text that reveals nothing} */
  @Override
  public String toString() {
    return "a secret";
  }
}
