package dev.vgpu.files;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class UnpackedFileTest {
  private static final String RESOURCE = "/native/libx.so";
  private static final byte[] CONTENT = "a library".getBytes(StandardCharsets.US_ASCII);

  @TempDir Path base;

  /** A class of the jar. */
  static final class Inside {}

  private static String sha256(byte[] content) throws Exception {
    return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
  }

  private static void add(JarOutputStream jar, String name, byte[] content) throws IOException {
    jar.putNextEntry(new JarEntry(name));
    jar.write(content);
    jar.closeEntry();
  }

  /** The class in a jar beside the file and the checksum, as far as they are given. */
  private URL jar(byte[] content, String checksum) throws IOException {
    Path made = Files.createTempFile(base, "made", ".jar");
    String inside = Inside.class.getName().replace('.', '/') + ".class";
    try (OutputStream stream = Files.newOutputStream(made);
        JarOutputStream jar = new JarOutputStream(stream);
        InputStream own = Inside.class.getClassLoader().getResourceAsStream(inside)) {
      add(jar, inside, own.readAllBytes());
      if (content != null) {
        add(jar, RESOURCE.substring(1), content);
      }
      if (checksum != null) {
        add(
            jar,
            RESOURCE.substring(1) + ".sha256",
            (checksum + "\n").getBytes(StandardCharsets.US_ASCII));
      }
    }
    return made.toUri().toURL();
  }

  private Path unpack(URL jar) throws Exception {
    try (URLClassLoader loader = new URLClassLoader(new URL[] {jar}, null)) {
      Class<?> inside = loader.loadClass(Inside.class.getName());
      return new UnpackedFile(inside, RESOURCE, "libx.so").in(base.resolve("unpacked"));
    }
  }

  @Test
  void theFileLiesUnderItsChecksumAndNobodyMayChangeIt() throws Exception {
    Path file = unpack(jar(CONTENT, sha256(CONTENT)));
    assertThat(file)
        .isEqualTo(base.resolve("unpacked").resolve(sha256(CONTENT)).resolve("libx.so"));
    assertThat(file).hasBinaryContent(CONTENT);
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
        .isEqualTo("r-xr-xr-x");
    assertThat(
            PosixFilePermissions.toString(Files.getPosixFilePermissions(base.resolve("unpacked"))))
        .isEqualTo("rwx------");
  }

  @Test
  void aWholeFileIsUsedAsItIs() throws Exception {
    URL jar = jar(CONTENT, sha256(CONTENT));
    Path file = unpack(jar);
    FileTime early = FileTime.fromMillis(1000);
    Files.setLastModifiedTime(file, early);
    assertThat(unpack(jar)).isEqualTo(file);
    assertThat(Files.getLastModifiedTime(file)).isEqualTo(early);
  }

  @Test
  void aDamagedFileIsUnpackedAgain() throws Exception {
    URL jar = jar(CONTENT, sha256(CONTENT));
    Path file = unpack(jar);
    for (String damage : new String[] {"a lib", "a libraRy"}) {
      Files.delete(file);
      Files.writeString(file, damage);
      assertThat(unpack(jar)).hasBinaryContent(CONTENT);
    }
  }

  @Test
  void aDamagedJarIsRefused() throws Exception {
    URL jar = jar(CONTENT, sha256(new byte[0]));
    assertThatIOException()
        .isThrownBy(() -> unpack(jar))
        .withMessageContaining("damaged in the jar")
        .withMessageContaining("sha256=" + sha256(CONTENT));
    assertThat(base.resolve("unpacked")).doesNotExist();
  }

  @Test
  void whatTheJarDoesNotHaveIsNamed() throws Exception {
    URL withoutChecksum = jar(CONTENT, null);
    assertThatIOException()
        .isThrownBy(() -> unpack(withoutChecksum))
        .withMessageContaining(RESOURCE + ".sha256");
    URL withoutFile = jar(null, sha256(CONTENT));
    assertThatIOException()
        .isThrownBy(() -> unpack(withoutFile))
        .withMessage("the jar has no such file: " + RESOURCE);
  }
}
