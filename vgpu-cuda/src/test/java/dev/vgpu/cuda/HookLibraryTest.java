package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.VgpuException;
import dev.vgpu.cuda.files.HookLibrary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HookLibraryTest {
  // Any resource with a checksum beside it; the content does not matter here.
  private static final String RESOURCE = "/hook-library/any.so";

  @TempDir Path run;

  @Test
  void itIsUnpackedOnceUnderItsChecksum() throws IOException {
    Path file = new HookLibrary(RESOURCE, Map.of()).in(run);
    assertThat(file).hasFileName("libvgpu_cuda.so").startsWithRaw(run.resolve("lib"));
    assertThat(file.getParent().getFileName().toString()).matches("[0-9a-f]{64}");
    Object key =
        Files.readAttributes(file, java.nio.file.attribute.BasicFileAttributes.class).fileKey();
    assertThat(new HookLibrary(RESOURCE, Map.of()).in(run)).isEqualTo(file);
    assertThat(
            Files.readAttributes(file, java.nio.file.attribute.BasicFileAttributes.class).fileKey())
        .isEqualTo(key);
    assertThat(file.getParent()).isDirectoryContaining("glob:**/libvgpu_cuda.so");
    Path link = file.resolveSibling("libcuda.so");
    assertThat(Files.readSymbolicLink(link)).isEqualTo(file.getFileName());
    try (var files = Files.list(file.getParent())) {
      assertThat(files).containsExactlyInAnyOrder(file, link);
    }
  }

  @Test
  void aHalfWrittenOneIsReplaced() throws IOException {
    Path file = new HookLibrary(RESOURCE, Map.of()).in(run);
    long size = Files.size(file);
    Files.delete(file);
    Files.write(file, new byte[3]);
    assertThat(Files.size(new HookLibrary(RESOURCE, Map.of()).in(run))).isEqualTo(size);
  }

  @Test
  void aNamedOneIsUsedWhereItIs() throws IOException {
    Path mine = Files.createFile(run.resolve("mine.so"));
    assertThat(new HookLibrary(RESOURCE, Map.of("VGPU_HOOK", mine.toString())).in(run))
        .isEqualTo(mine);
    HookLibrary missing = new HookLibrary(RESOURCE, Map.of("VGPU_HOOK", "/no/such.so"));
    assertThat(missing.missing()).hasValueSatisfying(why -> assertThat(why).contains("/no/such"));
    assertThatThrownBy(() -> missing.in(run)).isInstanceOf(VgpuException.class);
    assertThat(new CudaHookBackend(Map.of("VGPU_HOOK", "/no/such.so")).status().isAvailable())
        .isFalse();
  }

  @Test
  void aNamedOneThatAnotherUserMayChangeIsRefused() throws IOException {
    Path place = Files.createDirectory(run.resolve("place"));
    Path mine = Files.createFile(place.resolve("mine.so"));
    for (Path open : List.of(mine, place)) {
      Set<PosixFilePermission> before = Files.getPosixFilePermissions(open);
      Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
      HookLibrary library = new HookLibrary(RESOURCE, Map.of("VGPU_HOOK", mine.toString()));
      assertThatThrownBy(() -> library.in(run))
          .isInstanceOf(VgpuException.class)
          .hasMessageContaining("VGPU_HOOK names a file that cannot be used");
      Files.setPosixFilePermissions(open, before);
    }
  }

  @Test
  void aPathThatCannotBePreloadedIsRefused() throws IOException {
    Path mine = Files.createFile(run.resolve("my hook.so"));
    HookLibrary library = new HookLibrary(RESOURCE, Map.of("VGPU_HOOK", mine.toString()));
    assertThatThrownBy(() -> library.in(run)).hasMessageContaining("space or a colon");
  }

  @Test
  void aDamagedOneIsNotUnpacked() {
    assertThatThrownBy(() -> new HookLibrary("/hook-library/damaged.so", Map.of()).in(run))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("damaged in the jar");
    assertThat(run).isEmptyDirectory();
  }

  @Test
  void whereTheJarHasNoneItSaysSo() {
    assertThat(new HookLibrary("/no/such/resource", Map.of()).missing())
        .hasValueSatisfying(why -> assertThat(why).contains("holds no hook for this machine"));
  }
}
