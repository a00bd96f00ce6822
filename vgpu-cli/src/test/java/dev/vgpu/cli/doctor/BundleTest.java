package dev.vgpu.cli.doctor;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BundleTest {
  @TempDir private Path directory;

  private static Map<String, String> read(Path file) throws IOException {
    Map<String, String> texts = new LinkedHashMap<>();
    try (ZipInputStream zip = new ZipInputStream(Files.newInputStream(file))) {
      for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
        texts.put(entry.getName(), new String(zip.readAllBytes(), UTF_8));
      }
    }
    return texts;
  }

  @Test
  void nothingSecretIsInIt() throws IOException {
    Map<String, String> environment =
        Map.of(
            "HOME", "/home/alice",
            "USER", "alice",
            "API_TOKEN", "hunter2",
            "AWS_SECRET_ACCESS_KEY", "swordfish",
            "VGPU_UNHEARD_OF", "opensesame",
            "VGPU_RUN_DIR", "/home/alice/run",
            "CUDA_VISIBLE_DEVICES", "GPU-1");
    Path listed = Files.createDirectories(directory.resolve("run"));
    Files.writeString(listed.resolve("seat.holder"), "hunter2");
    Path file = directory.resolve("bundle.zip");
    new Bundle(environment, "gpu-node-17")
        .add("events.txt", "alice on gpu-node-17 in /home/alice/models, malice aside\n")
        .addEnvironment()
        .addListing(listed)
        .write(file);
    Map<String, String> texts = read(file);
    assertThat(texts.keySet())
        .containsExactly("events.txt", "environment.txt", "run-directory.txt");
    assertThat(texts.get("events.txt")).isEqualTo("<user> on <host> in ~/models, malice aside\n");
    assertThat(texts.get("environment.txt"))
        .isEqualTo("CUDA_VISIBLE_DEVICES=GPU-1\nVGPU_RUN_DIR=~/run\n");
    assertThat(texts.get("run-directory.txt")).contains("seat.holder 7");
    assertThat(String.join("", texts.values()))
        .doesNotContain("hunter2", "swordfish", "opensesame", "TOKEN", "SECRET", "UNHEARD");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
        .isEqualTo("rw-------");
  }

  @Test
  void neitherWhoCalledSudoNorTheOwnerIsInIt() throws IOException {
    Path passwd = directory.resolve("passwd");
    Files.writeString(
        passwd, "root:x:0:0:root:/root:/bin/sh\nalice:x:7:7:A. Smith:/people/a.smith/:/bin/sh\n");
    Map<String, String> environment =
        Map.of("HOME", "/root", "USER", "root", "SUDO_USER", "alice", "VGPU_RUN_DIR", "/srv/bob/x");
    Path file = directory.resolve("bundle.zip");
    People people = People.of(environment, "carol", "/srv/bob", passwd);
    new Bundle(environment, "", people)
        .add("events.txt", "alice /people/a.smith/m /home/alice/m carol /home/carol root /root\n")
        .addEnvironment()
        .write(file);
    Map<String, String> texts = read(file);
    assertThat(texts.get("events.txt")).isEqualTo("<user> ~/m ~/m <user> ~ root /root\n");
    assertThat(texts.get("environment.txt")).isEqualTo("VGPU_RUN_DIR=~/x\n");
  }

  @Test
  void whereTheUsersAreKeptElsewhereTheirNamesAreStillTakenOut() throws IOException {
    Path file = directory.resolve("bundle.zip");
    Map<String, String> environment = Map.of("SUDO_USER", "alice");
    new Bundle(environment, "", People.of(environment, "?", "?", directory.resolve("none")))
        .add("events.txt", "alice, /net/alice?\n")
        .write(file);
    assertThat(read(file).get("events.txt")).isEqualTo("<user>, /net/<user>?\n");
  }

  @Test
  void fileThatIsThereIsNotWrittenOver() throws IOException {
    Path file = Files.writeString(directory.resolve("there"), "mine");
    assertThatThrownBy(() -> new Bundle(Map.of(), "").add("a", "b").write(file))
        .isInstanceOf(FileAlreadyExistsException.class);
    assertThat(file).hasContent("mine");
  }
}
