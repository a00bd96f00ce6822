package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.GRANT_MORE_OFFSET;

import dev.vgpu.VgpuException;
import dev.vgpu.cuda.layout.ShmLayout.GrantMore;
import dev.vgpu.cuda.pages.SharedPage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Set;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The secrets that a HELLO must name. They keep a process from acting on another lease, or on the
 * slot of another process. Immutable.
 *
 * <p>A lease's secret is in its grant page: a user who can read that may run programs under the
 * lease. A slot's secret is sent only to its process, in the WELCOME. The process needs it to get
 * the slot back after its connection was lost. It is computed from the lease's secret, the slot and
 * the process, with a key that only the seat's user can read and no container sees. So the next
 * holder of the seat can compute it too.
 */
public final class SlotSecrets {
  /** The file of the seat's key, in the run directory. */
  public static final String KEY_FILE = "hook.key";

  private static final String ALGORITHM = "HmacSHA256";
  private static final int KEY_BYTES = 32;
  private static final int SECRET_BYTES = 16;
  private static final int SECRET = GRANT_MORE_OFFSET + GrantMore.SECRET;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final String lease;
  private final String leaseSecret;
  private final byte[] key;

  private SlotSecrets(String lease, String leaseSecret, byte[] key) {
    this.lease = lease;
    this.leaseSecret = leaseSecret;
    this.key = key;
  }

  /**
   * {@return the seat's key} Created if the file is missing or incomplete. The caller is the seat,
   * so no other process creates it.
   *
   * @throws IOException if the key can be neither read nor created
   */
  public static byte[] key(Path runDirectory) throws IOException {
    Path file = runDirectory.resolve(KEY_FILE);
    byte[] key = new byte[KEY_BYTES];
    if (Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
      try (FileChannel channel =
          FileChannel.open(file, StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS)) {
        if (channel.size() == KEY_BYTES && channel.read(ByteBuffer.wrap(key)) == KEY_BYTES) {
          return key;
        }
      }
    }
    Files.deleteIfExists(file);
    try (FileChannel channel =
        FileChannel.open(
            file,
            Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
      RANDOM.nextBytes(key);
      channel.write(ByteBuffer.wrap(key));
    }
    return key;
  }

  /** {@return the secrets of a lease} Creates the lease's secret if its page has none. */
  static SlotSecrets of(String lease, SharedPage grant, byte[] key) {
    byte[] found = new byte[2 * SECRET_BYTES];
    grant.buffer().get(SECRET, found);
    if (found[0] == 0) {
      byte[] made = new byte[SECRET_BYTES];
      RANDOM.nextBytes(made);
      found = HexFormat.of().formatHex(made).getBytes(StandardCharsets.ISO_8859_1);
      grant.buffer().put(SECRET, found);
    }
    return new SlotSecrets(lease, new String(found, StandardCharsets.ISO_8859_1), key);
  }

  /** {@return whether a HELLO names the lease's secret, and the slot's unless it is new} */
  boolean admits(HookMessage hello, boolean fresh) {
    String wanted = fresh ? leaseSecret : leaseSecret + " " + ofSlot(hello.slot(), hello);
    return MessageDigest.isEqual(bytes(wanted), bytes(hello.text()));
  }

  /** {@return the secret of a process's slot} */
  String ofSlot(int slot, HookMessage hello) {
    String what =
        String.join(
            "\0",
            leaseSecret,
            lease,
            Integer.toString(slot),
            Long.toString(hello.pid()),
            Long.toString(hello.startTime()),
            Long.toString(hello.pidNamespace()));
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(new SecretKeySpec(key, ALGORITHM));
      return HexFormat.of().formatHex(mac.doFinal(bytes(what)), 0, SECRET_BYTES);
    } catch (GeneralSecurityException e) {
      throw new VgpuException("this JDK lacks " + ALGORITHM, e);
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
