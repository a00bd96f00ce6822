package dev.vgpu.emulator;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Where libraries cannot be loaded from. */
class MountTableTest {
  private static final MountTable TABLE =
      new MountTable(
          List.of(
              "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
              "25 22 0:22 / /run rw,nosuid,nodev,noexec,relatime shared:5 - tmpfs tmpfs rw",
              "90 25 0:40 / /run/user/7 rw,nosuid,nodev,relatime shared:9 - tmpfs tmpfs rw",
              "91 22 0:41 / /mnt/two\\040words rw,noexec - tmpfs tmpfs rw",
              "92 91 0:42 / /mnt/two\\040words rw - tmpfs tmpfs rw",
              "broken"));

  @Test
  void theNearestMountDecides() {
    assertThat(TABLE.allowsExecution(Path.of("/tmp/x"))).isTrue();
    assertThat(TABLE.allowsExecution(Path.of("/run/vgpu/lib"))).isFalse();
    assertThat(TABLE.allowsExecution(Path.of("/run/user/7/vgpu/lib"))).isTrue();
    assertThat(TABLE.allowsExecution(Path.of("/runtime"))).isTrue();
  }

  @Test
  void theUppermostOfSeveralMountsDecides() {
    assertThat(TABLE.allowsExecution(Path.of("/mnt/two words/lib"))).isTrue();
  }

  @Test
  void nothingIsForbiddenWhereNothingIsKnown() {
    assertThat(new MountTable(List.of()).allowsExecution(Path.of("/run/vgpu/lib"))).isTrue();
  }

  @Test
  void librariesGoWhereTheyCanBeLoaded() {
    assertThat(EmulatorSettings.from(Map.of("HOME", "/root")).libraryDirectory(TABLE))
        .isEqualTo(Path.of("/root/.cache/vgpu/lib"));
    assertThat(
            EmulatorSettings.from(Map.of("XDG_RUNTIME_DIR", "/run/user/7", "HOME", "/home/a"))
                .libraryDirectory(TABLE))
        .isEqualTo(Path.of("/run/user/7/vgpu/lib"));
    assertThat(EmulatorSettings.from(Map.of()).libraryDirectory(TABLE))
        .isEqualTo(Path.of("/var/cache/vgpu/lib"));
  }
}
