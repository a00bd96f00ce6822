package dev.vgpu.files;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class LibraryPlaceTest {
  private static final Path RUN = Path.of("/run/vgpu/lib");
  private static final String ROOT = "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw";
  private static final String NOEXEC = "2 1 0:9 / /run rw,nosuid,noexec shared:5 - tmpfs tmpfs rw";
  private static final String EXEC = "3 1 0:9 / /run/vgpu rw,nosuid - tmpfs tmpfs rw";
  private static final Map<String, String> HOME = Map.of("HOME", "/home/u");

  @Test
  void librariesLieInTheRunDirectoryWhereTheyCanBeLoadedFromThere() {
    assertThat(new LibraryPlace(HOME, List.of(ROOT)).in(RUN)).hasToString("/run/vgpu/lib");
    assertThat(new LibraryPlace(HOME, List.of()).in(RUN)).hasToString("/run/vgpu/lib");
    assertThat(new LibraryPlace(HOME, List.of(ROOT, NOEXEC, EXEC)).in(RUN))
        .hasToString("/run/vgpu/lib");
  }

  @Test
  void elsewhereTheyLieInTheCache() {
    List<String> mounts = List.of(ROOT, NOEXEC);
    assertThat(new LibraryPlace(HOME, mounts).in(RUN)).hasToString("/home/u/.cache/vgpu/lib");
    assertThat(new LibraryPlace(Map.of("XDG_CACHE_HOME", "/c", "HOME", "/h"), mounts).in(RUN))
        .hasToString("/c/vgpu/lib");
    assertThat(new LibraryPlace(Map.of(), mounts).in(RUN)).hasToString("/var/cache/vgpu/lib");
  }

  @Test
  void nonsenseInTheMountTableIsPassedOver() {
    assertThat(new LibraryPlace(HOME, List.of("", "x", NOEXEC, "1 2 3 4", "1 2 3 / /run")).in(RUN))
        .hasToString("/home/u/.cache/vgpu/lib");
  }

  @Test
  void ofMountsWhoseNamesHoldBlanksTheUppermostDecides() {
    List<String> mounts =
        List.of(
            ROOT,
            "4 1 0:41 / /mnt/two\\040words rw,noexec - tmpfs tmpfs rw",
            "5 4 0:42 / /mnt/two\\040words rw - tmpfs tmpfs rw");
    Path lib = Path.of("/mnt/two words/lib");
    assertThat(new LibraryPlace(HOME, mounts).in(lib)).isEqualTo(lib);
    assertThat(new LibraryPlace(HOME, List.of(ROOT, NOEXEC)).in(Path.of("/runtime/lib")))
        .hasToString("/runtime/lib");
  }

  @Test
  void aMountOnTopThatAllowsNothingDecidesToo() {
    List<String> mounts =
        List.of(
            ROOT,
            "4 1 0:41 / /mnt/two\\040words rw - tmpfs tmpfs rw",
            "5 4 0:42 / /mnt/two\\040words rw,noexec - tmpfs tmpfs rw");
    assertThat(new LibraryPlace(HOME, mounts).in(Path.of("/mnt/two words/lib")))
        .hasToString("/home/u/.cache/vgpu/lib");
  }

  @Test
  void aCacheWithoutAnAbsolutePathIsPassedOver() {
    List<String> mounts = List.of(ROOT, NOEXEC);
    assertThat(new LibraryPlace(Map.of("XDG_CACHE_HOME", "c", "HOME", "/h"), mounts).in(RUN))
        .hasToString("/h/.cache/vgpu/lib");
    assertThat(new LibraryPlace(Map.of("XDG_CACHE_HOME", "", "HOME", "h"), mounts).in(RUN))
        .hasToString("/var/cache/vgpu/lib");
  }
}
