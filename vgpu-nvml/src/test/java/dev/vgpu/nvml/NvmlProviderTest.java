package dev.vgpu.nvml;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuDriverException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.spi.GpuDriver;
import dev.vgpu.spi.GpuProvider;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NvmlProviderTest {
  @TempDir Path directory;

  private static GpuDriver emulator() {
    return ServiceLoader.load(GpuDriver.class).findFirst().orElseThrow();
  }

  /** Uses the emulator even on a machine that has a driver. */
  private NvmlProvider emulated() {
    return new NvmlProvider(Map.of(), List.of(directory), List.of(emulator()));
  }

  private static NvmlProvider named(Path nvml) {
    return new NvmlProvider(Map.of("VGPU_NVML", nvml.toString()), List.of(), List.of(emulator()));
  }

  @Test
  void itIsFoundAsAService() {
    assertThat(ServiceLoader.load(GpuProvider.class))
        .hasAtLeastOneElementOfType(NvmlProvider.class);
  }

  /** Otherwise a provider sees no GPU if its first two calls come at the same time. */
  @Test
  void threadsThatLookForDriversAtTheSameTimeFindThem() throws Exception {
    int threads = 4;
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      CyclicBarrier together = new CyclicBarrier(threads);
      for (int i = 0; i < 300; i++) {
        Iterable<GpuDriver> drivers = NvmlProvider.installedDrivers();
        Callable<List<GpuDriver>> look =
            () -> {
              int ignored = together.await();
              List<GpuDriver> all = new ArrayList<>();
              drivers.forEach(all::add);
              return all;
            };
        for (Future<List<GpuDriver>> found : pool.invokeAll(Collections.nCopies(threads, look))) {
          assertThat(found.get()).hasSize(1);
        }
      }
    } finally {
      assertThat(pool.shutdownNow()).isEmpty();
    }
  }

  @Test
  void emulatedGpusAreFoundAsRealOnesAre() {
    NvmlProvider provider = emulated();
    List<PhysicalGpu> gpus = provider.gpus();
    assertThat(gpus).hasSize(3).extracting(PhysicalGpu::id).doesNotHaveDuplicates();
    for (PhysicalGpu gpu : gpus) {
      assertThat(gpu.id().value()).startsWith("GPU-");
      assertThat(gpu.model()).isNotBlank();
      assertThat(gpu.memory()).isEqualTo(MemorySize.ofGibibytes(2));
      assertThat(gpu.usableMemory().bytes()).isBetween(1L << 30, gpu.memory().bytes());
      assertThat(gpu.provider()).isEqualTo("emulator");
    }
    assertThat(provider.gpus()).isEqualTo(gpus);
    assertThat(provider.status().isAvailable()).isTrue();
    assertThat(provider.status().name()).isEqualTo("emulator");
  }

  @Test
  void nobodyRunsOnAnEmulatedGpuYet() {
    NvmlProvider provider = emulated();
    assertThat(provider.processes(provider.gpus().get(0).id())).isEmpty();
    assertThatThrownBy(() -> provider.processes(new GpuId("GPU-none")))
        .isInstanceOf(GpuDriverException.class)
        .hasMessageContaining("nvmlDeviceGetHandleByUUID failed");
  }

  @Test
  void aProcessIsToldWhichGpuAndWhichDriver() {
    NvmlProvider provider = emulated();
    GpuId id = provider.gpus().get(1).id();
    assertThat(provider.environment(id))
        .containsEntry("CUDA_VISIBLE_DEVICES", id.value())
        .containsEntry("VGPU_NVML", emulator().nvmlLibrary().toString())
        .containsEntry("VGPU_CUDA_DRIVER", emulator().cudaLibrary().toString())
        .containsKeys("VGPU_EMULATOR_DIR", "VGPU_CONTEXT_MEMORY");
  }

  @Test
  void aNamedLibraryIsUsedBeforeAllOthers() throws IOException {
    Path nvml = directory.resolve("libnvidia-ml.so.1");
    Files.copy(emulator().nvmlLibrary(), nvml);
    Files.createFile(directory.resolve("libcuda.so.1"));
    NvmlProvider provider = named(nvml);
    assertThat(provider.gpus()).hasSize(3);
    assertThat(provider.status()).hasToString("nvml: available");
    assertThat(provider.environment(new GpuId("GPU-x")))
        .containsEntry("VGPU_NVML", nvml.toString())
        .containsEntry("VGPU_CUDA_DRIVER", directory.resolve("libcuda.so.1").toString());
  }

  @Test
  void theMachinesOwnIsUsedBeforeTheEmulator() throws IOException {
    Files.copy(emulator().nvmlLibrary(), directory.resolve("libnvidia-ml.so.1"));
    assertThat(emulated().gpus()).hasSize(3).extracting(PhysicalGpu::provider).containsOnly("nvml");
    NvmlProvider byPath =
        new NvmlProvider(Map.of("LD_LIBRARY_PATH", "x:" + directory), List.of(), List.of());
    assertThat(byPath.gpus()).hasSize(3);
  }

  /** As in an image for GPUs that runs on a machine without one. */
  @Test
  void aLibraryWithoutItsKernelDriverGivesWayToTheEmulator() throws Exception {
    Path idle = compiled("idle_nvml.c");
    Files.createFile(directory.resolve("libcuda.so.1"));
    NvmlProvider provider = emulated();
    assertThat(provider.status()).hasToString("emulator: available");
    List<PhysicalGpu> gpus = provider.gpus();
    assertThat(gpus).hasSize(3).extracting(PhysicalGpu::provider).containsOnly("emulator");
    assertThat(provider.readings()).hasSize(3);
    assertThat(provider.environment(gpus.get(0).id()))
        .containsEntry("VGPU_NVML", emulator().nvmlLibrary().toString())
        .containsEntry("VGPU_CUDA_DRIVER", emulator().cudaLibrary().toString());
    NvmlProvider alone = new NvmlProvider(Map.of(), List.of(directory), List.of());
    assertThat(alone.gpus()).isEmpty();
    assertThat(alone.status().unavailableBecause())
        .hasValueSatisfying(why -> assertThat(why).contains("NVML error 9"));
    assertThat(named(idle).status().unavailableBecause())
        .hasValueSatisfying(why -> assertThat(why).contains("NVML error 9"));
  }

  /** {@return a library of src/test/c, under the name of NVML} */
  private Path compiled(String source) throws Exception {
    Path library = directory.resolve("libnvidia-ml.so.1");
    Process compiler =
        new ProcessBuilder(
                "cc", "-fPIC", "-shared", "src/test/c/" + source, "-o", library.toString())
            .redirectErrorStream(true)
            .start();
    String said = new String(compiler.getInputStream().readAllBytes(), UTF_8);
    assertThat(compiler.waitFor()).as(said).isZero();
    return library;
  }

  @Test
  void withoutAnyDriverThereAreNoGpus() {
    NvmlProvider provider = new NvmlProvider(Map.of(), List.of(directory), List.of());
    assertThat(provider.gpus()).isEmpty();
    assertThat(provider.status().unavailableBecause())
        .hasValueSatisfying(
            why -> assertThat(why).contains("VGPU_NVML is not set", directory.toString()));
    assertThat(provider.environment(new GpuId("GPU-x")))
        .isEqualTo(Map.of("CUDA_VISIBLE_DEVICES", "GPU-x"));
  }

  private static void failsWith(NvmlProvider provider, String reason) {
    BackendStatus status = provider.status();
    assertThat(status.isAvailable()).isFalse();
    assertThat(status.unavailableBecause())
        .hasValueSatisfying(why -> assertThat(why).contains(reason));
    assertThatThrownBy(provider::gpus)
        .isInstanceOf(GpuDriverException.class)
        .hasMessageContaining(reason);
  }

  @Test
  void aLibraryThatIsNoneIsTold() throws IOException {
    failsWith(named(directory.resolve("none")), "names no file");
    failsWith(named(directory), "names no file");
    Path text = Files.writeString(directory.resolve("text"), "not a library at all, for sure");
    failsWith(named(text), "cannot be loaded");
    failsWith(named(Files.createFile(directory.resolve("empty"))), "cannot be loaded");
    failsWith(named(emulator().cudaLibrary()), "it has no nvmlInit_v2");
  }

  @Test
  void aLibraryThatAnotherUserCanChangeIsNotLoaded(@TempDir Path directory) throws Exception {
    Path open = Files.createDirectory(directory.resolve("open"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    Path named = Files.createFile(open.resolve("libnvidia-ml.so.1"));
    NvmlProvider provider =
        new NvmlProvider(Map.of("VGPU_NVML", named.toString()), List.of(), List.of());
    assertThat(provider.missing())
        .hasValueSatisfying(
            why -> assertThat(why).contains("VGPU_NVML", "every user can write", open.toString()));
    NvmlProvider driverNamed =
        new NvmlProvider(
            Map.of(
                "VGPU_NVML", emulator().nvmlLibrary().toString(),
                "VGPU_CUDA_DRIVER", open.resolve("libcuda.so.1").toString()),
            List.of(),
            List.of());
    assertThatThrownBy(() -> driverNamed.environment(new GpuId("GPU-1")))
        .isInstanceOf(GpuDriverException.class)
        .hasMessageContainingAll("VGPU_CUDA_DRIVER", "every user can write", open.toString());
  }
}
