package dev.vgpu.files;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** Which file of a jar is for which machine. */
class NativeResourceTest {
  @Test
  void eachArchitectureHasItsOwn() {
    assertThat(NativeResource.of("libx.so", "amd64"))
        .isEqualTo("/META-INF/native/linux-x86_64/libx.so");
    assertThat(NativeResource.of("libx.so", "aarch64"))
        .isEqualTo("/META-INF/native/linux-aarch64/libx.so");
  }

  @Test
  void theOneOfThisJvmIsTaken() {
    assertThat(NativeResource.of("libx.so"))
        .isEqualTo(NativeResource.of("libx.so", System.getProperty("os.arch", "")));
  }
}
