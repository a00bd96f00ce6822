package dev.vgpu.cuda.pages;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** JNA is loaded only where the kernel may be able to refuse files. */
@Timeout(60)
class PassedFilesTest {
  @ParameterizedTest
  @CsvSource({
    "5.14.0-503.el9.x86_64, false",
    "6.1.0-37-amd64, false",
    "6.15.11, false",
    "6.16.0-rc1, true",
    "6.18.44-fc, true",
    "7.0, true",
    "10.1, true",
    "unknown, true",
  })
  void onlyALaterKernelIsAsked(String release, boolean asked) {
    assertThat(PassedFiles.canRefuse(release)).isEqualTo(asked);
  }
}
