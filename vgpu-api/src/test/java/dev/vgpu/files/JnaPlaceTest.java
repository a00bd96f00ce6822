package dev.vgpu.files;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JnaPlaceTest {
  @TempDir private Path directory;

  private void mode(String mode) throws IOException {
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString(mode));
  }

  @Test
  void cacheThatOthersMayWriteToIsRefused() throws IOException {
    mode("rwxrwxrwx");
    assertThatThrownBy(() -> JnaPlace.check(Map.of("XDG_CACHE_HOME", directory.toString())))
        .isInstanceOf(UntrustedFileException.class)
        .hasMessageContaining("XDG_CACHE_HOME");
  }

  @Test
  void cacheOfThisUserAloneIsUsed() throws IOException {
    mode("rwx------");
    assertThatCode(() -> JnaPlace.check(Map.of("XDG_CACHE_HOME", directory.toString())))
        .doesNotThrowAnyException();
  }
}
