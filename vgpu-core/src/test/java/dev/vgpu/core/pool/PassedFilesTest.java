package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.testing.Frames;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Clients pass open files to the seat with their messages (SCM_RIGHTS). */
@Timeout(60)
class PassedFilesTest extends TwoPools {
  @TempDir private Path place;

  /** {@return the open files of this process that are no part of its own} */
  private static long openNulls() throws IOException {
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      return files.filter(PassedFilesTest::isNull).count();
    }
  }

  private static boolean isNull(Path file) {
    try {
      return Files.readSymbolicLink(file).equals(Path.of("/dev/null"));
    } catch (IOException e) {
      return false; // closed meanwhile
    }
  }

  @Test
  void filesThatClientsPassAreNotKeptAndChangeNoMessage() throws Exception {
    Path program = place.resolve("pass_descriptors");
    Process compiler =
        new ProcessBuilder("cc", "-o", program.toString(), "src/test/resources/pass_descriptors.c")
            .inheritIO()
            .start();
    assertThat(compiler.waitFor()).isZero();
    long before = openNulls();
    byte[] hello = Frames.hello("any").array();
    List<Process> clients = new ArrayList<>();
    try {
      for (int i = 0; i < 4; i++) {
        Process passes =
            new ProcessBuilder(program.toString(), directory.resolve("seat.sock").toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        clients.add(passes);
        try (OutputStream to = passes.getOutputStream()) {
          to.write(hello);
        }
        assertThat(new String(passes.getInputStream().readAllBytes(), StandardCharsets.UTF_8))
            .contains("settings.");
      }
      assertThat(clients).allMatch(Process::isAlive);
      assertThat(openNulls()).isLessThanOrEqualTo(before);
      assertThat(client.leases()).isEmpty();
    } finally {
      clients.forEach(Process::destroyForcibly);
    }
  }
}
