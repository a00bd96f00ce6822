package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Only the forking thread exists in the child of a fork. A lock that another thread held is held
 * there for ever, so the hook clears each lock of file scope.
 */
class ForkLocksTest {
  private static final Pattern LOCK =
      Pattern.compile("^(static )?struct vgpu_lock (\\w+);", Pattern.MULTILINE);

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void theChildOfAForkClearsEachLock() throws IOException {
    List<String> sources;
    try (Stream<Path> files = Files.walk(Path.of("src/main/c"))) {
      sources =
          files
              .filter(file -> file.toString().endsWith(".c"))
              .map(ForkLocksTest::read)
              .collect(Collectors.toList());
    }
    int locks = 0;
    for (String source : sources) {
      Matcher lock = LOCK.matcher(source);
      while (lock.find()) {
        locks++;
        List<String> mayClear = lock.group(1) == null ? sources : List.of(source);
        assertThat(mayClear)
            .as(lock.group(2))
            .anyMatch(each -> each.contains(lock.group(2) + ".word = 0;"));
      }
    }
    assertThat(locks).isGreaterThan(10);
  }
}
