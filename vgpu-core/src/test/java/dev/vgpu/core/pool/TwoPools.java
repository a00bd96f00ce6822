package dev.vgpu.core.pool;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** Two pools in one run directory, as if of two processes: the seat's holder and a client. */
abstract class TwoPools {
  final FakeBackend backend = new FakeBackend();
  final List<Pools.TestGpu> gpus;
  Path directory;
  GpuPool holder;
  GpuPool client;

  TwoPools() {
    this(1);
  }

  TwoPools(int gpus) {
    this.gpus = Pools.gpus(gpus);
  }

  @BeforeEach
  void openBoth() throws IOException {
    directory = Files.createTempDirectory("vg");
    holder = open();
    client = open();
  }

  @AfterEach
  void closeBoth() throws IOException {
    client.close();
    holder.close();
    Pools.delete(directory);
  }

  GpuPool open() {
    return open(directory);
  }

  GpuPool open(Discovery discovery) {
    return open(directory, discovery);
  }

  GpuPool open(Path runDirectory) {
    return open(runDirectory, new Discovery(List.of()));
  }

  private GpuPool open(Path runDirectory, Discovery discovery) {
    return new NodeRegistry(Map.of(), () -> List.of(backend))
        .openPool(
            GpuPoolOptions.builder().runDirectory(runDirectory).gpus(List.copyOf(gpus)).build(),
            discovery,
            NanoClock.SYSTEM);
  }
}
