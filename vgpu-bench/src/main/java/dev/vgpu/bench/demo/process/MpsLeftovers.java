package dev.vgpu.bench.demo.process;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * Stops MPS daemons that remain in a run directory that will not be used again. Such daemons
 * outlive the process that started them, so that the next holder of the seat finds them; here there
 * is no next holder.
 */
final class MpsLeftovers implements AutoCloseable {
  static final String RUN_DIRECTORY = "run";

  private final Path directory;

  MpsLeftovers(Path directory) {
    this.directory = directory;
  }

  Path directory() {
    return directory;
  }

  /** Stops the daemons that still run. Never throws. */
  @Override
  public void close() {
    for (Path file : pidFiles()) {
      try {
        ProcessHandle.of(Long.parseLong(Files.readString(file, UTF_8).strip()))
            .ifPresent(MpsLeftovers::end);
      } catch (IOException | NumberFormatException e) {
        // It has just terminated by itself.
      }
    }
  }

  private static void end(ProcessHandle daemon) {
    List<ProcessHandle> servers = daemon.children().toList();
    boolean ignored = daemon.destroyForcibly();
    servers.forEach(ProcessHandle::destroyForcibly);
  }

  private List<Path> pidFiles() {
    Path daemons = directory.resolve(RUN_DIRECTORY).resolve("mps");
    if (!Files.isDirectory(daemons)) {
      return List.of();
    }
    try (Stream<Path> files = Files.walk(daemons)) {
      return files.filter(file -> file.toString().endsWith(".pid")).toList();
    } catch (IOException e) {
      return List.of();
    }
  }
}
