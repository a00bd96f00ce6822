package dev.vgpu.nvml;

import dev.vgpu.spi.GpuDriver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;

/** The emulator's NVML, whose readings and faults a test sets. Closing it clears them. */
public final class EmulatedNvml implements AutoCloseable {
  private final Path directory = Path.of(System.getenv("VGPU_EMULATOR_DIR"));
  private final Path settings = directory.resolve("nvml");

  public EmulatedNvml() throws IOException {
    Files.createDirectories(directory);
    Files.deleteIfExists(settings);
  }

  public static GpuDriver driver() {
    return ServiceLoader.load(GpuDriver.class).findFirst().orElseThrow();
  }

  public NvmlProvider provider() {
    return new NvmlProvider(Map.of(), List.of(), List.of(driver()));
  }

  /** Replaces the earlier settings atomically. */
  public void set(String... lines) throws IOException {
    Path next = directory.resolve("nvml.next");
    Files.write(next, List.of(lines));
    Files.move(next, settings, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
  }

  /** Triggers an event. */
  public void event(int gpu, int type, long data) throws IOException {
    Files.writeString(
        directory.resolve("nvml.events"),
        gpu + " " + type + " " + data + "\n",
        StandardOpenOption.CREATE,
        StandardOpenOption.APPEND);
  }

  @Override
  public void close() throws IOException {
    Files.deleteIfExists(settings);
  }
}
