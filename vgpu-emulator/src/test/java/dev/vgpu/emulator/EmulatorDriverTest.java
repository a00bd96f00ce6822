package dev.vgpu.emulator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.VgpuException;
import dev.vgpu.files.LibraryPlace;
import dev.vgpu.files.ProcessUser;
import dev.vgpu.spi.GpuDriver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Unpacking, and the environment that programs get. */
class EmulatorDriverTest {
  @TempDir Path directory;

  private EmulatorDriver driver() {
    return new EmulatorDriver(environment());
  }

  private Map<String, String> environment() {
    return Map.of("VGPU_EMULATOR_DIR", directory.resolve("emulator").toString());
  }

  @Test
  void isFoundByServiceLoader() {
    assertThat(ServiceLoader.load(GpuDriver.class))
        .singleElement()
        .isInstanceOf(EmulatorDriver.class)
        .extracting(GpuDriver::name)
        .isEqualTo("emulator");
  }

  @Test
  void librariesAreUnpackedUnderTheirNames() {
    Path cuda = driver().cudaLibrary();
    Path nvml = driver().nvmlLibrary();
    assertThat(cuda).isExecutable().hasFileName("libcuda.so.1").startsWith(directory);
    assertThat(nvml).isExecutable().hasFileName("libnvidia-ml.so.1").startsWith(directory);
    assertThat(driver().cudaLibrary()).isEqualTo(cuda);
  }

  @Test
  void severalMayUnpackAtOnce() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(8);
    try {
      List<Callable<Path>> calls = new ArrayList<>();
      for (int i = 0; i < 32; i++) {
        calls.add(() -> driver().cudaLibrary());
      }
      Path expected = driver().cudaLibrary();
      for (Future<Path> result : threads.invokeAll(calls)) {
        assertThat(result.get()).isEqualTo(expected);
      }
      try (Stream<Path> files = Files.list(expected.getParent())) {
        assertThat(files).containsExactly(expected);
      }
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void damagedFilesAreReplaced() throws IOException {
    Path library = driver().cudaLibrary();
    byte[] good = Files.readAllBytes(library);
    Files.delete(library);
    Files.writeString(library, "not a library");
    assertThat(driver().cudaLibrary()).isEqualTo(library).hasBinaryContent(good);
  }

  @Test
  void whatIsThereAlreadyIsLeftAlone() throws IOException {
    Path library = driver().cudaLibrary();
    Object file = Files.readAttributes(library, BasicFileAttributes.class).fileKey();
    assertThat(driver().cudaLibrary()).isEqualTo(library);
    assertThat(Files.readAttributes(library, BasicFileAttributes.class).fileKey()).isEqualTo(file);
  }

  @Test
  void placesThatCannotBeWrittenAreNamed() throws IOException {
    Path file = Files.writeString(directory.resolve("file"), "in the way");
    EmulatorDriver inTheWay =
        new EmulatorDriver(Map.of("VGPU_EMULATOR_DIR", file.resolve("emulator").toString()));
    assertThatThrownBy(inTheWay::cudaLibrary)
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("directory=" + file);
    Path missing = Path.of("/proc/nowhere/emulator");
    EmulatorDriver impossible = new EmulatorDriver(Map.of("VGPU_EMULATOR_DIR", missing.toString()));
    assertThatThrownBy(impossible::nvmlLibrary)
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("/proc/nowhere");
  }

  @Test
  void programsAreToldTheSameDirectory() {
    assertThat(driver().environment())
        .containsEntry("VGPU_EMULATOR_DIR", directory.resolve("emulator").toString())
        .containsEntry("VGPU_CONTEXT_MEMORY", Long.toString(64L << 20))
        .doesNotContainKey("VGPU_EMULATOR");
    assertThat(new EmulatorDriver(Map.of("VGPU_RUN_DIR", "/run/x")).environment())
        .containsEntry("VGPU_EMULATOR_DIR", "/run/x/emulator");
    assertThat(new EmulatorDriver(Map.of("XDG_RUNTIME_DIR", "/run/user/7")).environment())
        .containsEntry("VGPU_EMULATOR_DIR", "/run/user/7/vgpu/emulator");
    assertThat(new EmulatorDriver(Map.of("VGPU_RUN_DIR", "")).environment())
        .containsEntry("VGPU_EMULATOR_DIR", "/run/vgpu/emulator");
  }

  @Test
  void contextSizeComesFromTheSettings() throws IOException {
    Path file =
        Files.writeString(
            directory.resolve("settings"), "# comment\ndevices = 2\ncontext = 8MiB\n");
    assertThat(
            new EmulatorDriver(Map.of("VGPU_EMULATOR", "devices=2,context=300MiB")).environment())
        .containsEntry("VGPU_CONTEXT_MEMORY", Long.toString(300L << 20))
        .containsEntry("VGPU_EMULATOR", "devices=2,context=300MiB");
    assertThat(new EmulatorDriver(Map.of("VGPU_EMULATOR", "@" + file)).environment())
        .containsEntry("VGPU_CONTEXT_MEMORY", Long.toString(8L << 20));
    EmulatorDriver bad = new EmulatorDriver(Map.of("VGPU_EMULATOR", "context=much"));
    assertThatThrownBy(bad::environment)
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("context=much");
  }

  @Test
  void unpackedDirectoriesAreForTheUserAlone() throws IOException {
    Path parent = driver().cudaLibrary().getParent();
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(parent)))
        .isEqualTo("rwx------");
  }

  /** The replacement has the original's length, so only the content differs. */
  @Test
  void anotherFileOfTheSameLengthIsReplaced() throws IOException {
    Path library = driver().cudaLibrary();
    byte[] good = Files.readAllBytes(library);
    Files.delete(library);
    Files.write(library, new byte[good.length]);
    assertThat(driver().cudaLibrary()).hasBinaryContent(good);
  }

  @Test
  void nothingIsLoadedFromWhereAnotherUserCanPutIt() throws IOException {
    Path library = driver().nvmlLibrary();
    Path run = Files.createDirectory(directory.resolve("inherited"));
    Path planted = run.resolve("vgpu").resolve(directory.relativize(library));
    Files.createDirectories(planted.getParent());
    Files.write(planted, new byte[(int) Files.size(library)]);
    Files.setPosixFilePermissions(run, PosixFilePermissions.fromString("rwxrwxrwx"));
    EmulatorDriver inherited = new EmulatorDriver(Map.of("XDG_RUNTIME_DIR", run.toString()));
    for (Callable<Path> call :
        List.<Callable<Path>>of(inherited::nvmlLibrary, inherited::cudaLibrary)) {
      assertThatThrownBy(call::call)
          .isInstanceOf(VgpuException.class)
          .hasMessageContaining("every user can write to it: path=" + run)
          .hasMessageContaining("XDG_RUNTIME_DIR");
    }
    if (ProcessUser.id() == 0) {
      Files.setPosixFilePermissions(run, PosixFilePermissions.fromString("rwx------"));
      Files.setAttribute(run, "unix:uid", 12_345);
      assertThatThrownBy(inherited::nvmlLibrary)
          .hasMessageContaining("belongs to another user: path=" + run);
    }
  }

  /** The library directory is checked too, not only the state's. */
  @Test
  void aPlantedLibraryIsNotUsed() throws IOException {
    Path library = driver().cudaLibrary();
    Files.setPosixFilePermissions(
        library.getParent(), PosixFilePermissions.fromString("rwxrwxrwx"));
    assertThatThrownBy(() -> driver().cudaLibrary()).hasMessageContaining("every user can write");
  }

  @Test
  void librariesAreBesideTheState() {
    EmulatorSettings settings = EmulatorSettings.from(Map.of("XDG_RUNTIME_DIR", "/run/user/7"));
    assertThat(settings.libraryDirectory(LibraryPlace.ofThisProcess(Map.of())))
        .isEqualTo(Path.of("/run/user/7/vgpu/lib"));
  }
}
