package dev.vgpu.bench.gpucheck.machine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.spi.GpuDriver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ElfLibraryTest {
  @TempDir private Path directory;

  private static Path emulator() throws IOException {
    return ServiceLoader.load(GpuDriver.class).findFirst().orElseThrow().cudaLibrary();
  }

  @Test
  void driverIsReadAsItWasBuilt() throws IOException {
    ElfLibrary driver = ElfLibrary.read(emulator());
    assertThat(driver.soname()).isEqualTo("libcuda.so.1");
    assertThat(driver.needed()).contains("libc.so.6");
    assertThat(driver.imports()).contains("ioctl", "mmap").doesNotContain("cuInit", "");
    assertThat(driver.isSymbolic()).isTrue();
    Path java = Path.of(System.getProperty("java.home", ""), "lib", "libjava.so");
    assertThat(ElfLibrary.read(java).isSymbolic()).isFalse();
  }

  @Test
  void libraryThatIsCutOffAnywhereIsRefused() throws IOException {
    byte[] whole = Files.readAllBytes(emulator());
    for (int i = 0; i < 40; i++) {
      Path cut = Files.write(directory.resolve("cut"), Arrays.copyOf(whole, whole.length * i / 40));
      assertThatThrownBy(() -> ElfLibrary.read(cut)).isInstanceOf(IOException.class);
    }
  }

  @Test
  void whatIsNoLibraryIsRefused() throws IOException {
    Path text = Files.writeString(directory.resolve("text"), "x".repeat(100));
    assertThatThrownBy(() -> ElfLibrary.read(text)).hasMessageContaining("no ELF file");
    assertThatThrownBy(() -> ElfLibrary.read(directory.resolve("nothing")))
        .isInstanceOf(IOException.class);
  }
}
