package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** A run directory and the processes that a test starts in it. */
final class SeatProcesses implements AutoCloseable {
  private static final AtomicInteger made = new AtomicInteger();

  final Path directory;
  private final String gpu = "it-" + made.incrementAndGet();
  private final List<Child> children = new ArrayList<>();

  SeatProcesses() throws IOException {
    directory = Files.createTempDirectory("vg");
  }

  static final class Child {
    final Process process;
    private final BufferedReader out;
    private final BufferedWriter in;

    Child(Process process) {
      this.process = process;
      this.out = process.inputReader();
      this.in = process.outputWriter();
    }

    String read() {
      try {
        return String.valueOf(out.readLine());
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    String ask(String line) {
      send(line);
      return read();
    }

    void send(String line) {
      try {
        in.write(line);
        in.newLine();
        in.flush();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    long number(String line) {
      return Long.parseLong(ask(line));
    }

    void kill() throws InterruptedException {
      process.destroyForcibly();
      process.waitFor();
    }

    void end() throws IOException, InterruptedException {
      in.close();
      process.waitFor();
    }
  }

  /** Starts a process with JVM options, and does not wait for it. */
  Child begin(String... options) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(options));
    command.addAll(
        List.of(
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-XX:-UsePerfData",
            "-Xmx128m",
            "-cp",
            System.getProperty("java.class.path"),
            SeatProcess.class.getName(),
            directory.toString(),
            gpu));
    Child child =
        new Child(
            new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start());
    children.add(child);
    return child;
  }

  Child start() throws IOException {
    Child child = begin();
    assertThat(child.read()).isEqualTo("ready");
    return child;
  }

  String gpu() {
    return gpu;
  }

  /** The process that holds the seat, according to the file beside the lock. */
  Child holder() throws IOException {
    String text = Files.readString(directory.resolve("seat.holder"));
    return children.stream()
        .filter(child -> text.startsWith("pid=" + child.process.pid() + " "))
        .findFirst()
        .orElseThrow(() -> new AssertionError("nobody holds the seat: " + text));
  }

  Path lease(String id) {
    return directory.resolve("leases").resolve(id);
  }

  @Override
  public void close() throws IOException {
    for (Child child : children) {
      child.process.destroyForcibly();
      child.process.onExit().join();
    }
    Pools.delete(directory);
  }
}
