package dev.vgpu.bench.harness;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;

/** The C program's source, which the jar contains. It is compiled with the machine's compiler. */
final class ProgramSource {
  private static final List<String> FILES =
      List.of(
          "program.h",
          "driver.c",
          "main.c",
          "costs.c",
          "load.c",
          "work.c",
          "measure.c",
          "churn.c",
          "churn_kinds.h",
          "churn_kinds.c",
          "observe.c",
          "lateness.c",
          "hold.c",
          "hostile.c",
          "serve.c",
          "train.c",
          "preempt.c",
          "level2.c",
          "shm.h",
          "vgpu_shm.def",
          "nvml_reader.h",
          "chaos.h",
          "chaos.c",
          "chaos_memory.c",
          "chaos_work.c",
          "chaos_ipc.c",
          "chaos_tenants.c",
          "audit.c",
          "signals.c",
          "stalls.c",
          "session.c",
          "about.c",
          "checkpoint.c",
          "cold.c",
          "calls.c",
          "waits.c",
          "paced.c",
          "memory.c",
          "names.c",
          "channels.c",
          "contend.c");
  private static final List<String> FLAGS = List.of("-std=c11", "-O2", "-Wall", "-Wextra");

  private ProgramSource() {}

  /**
   * Compiles the program.
   *
   * @param directory where the program goes
   * @return the program
   * @throws IllegalStateException if there is no C compiler, or it fails
   */
  static Path compile(Path directory) throws InterruptedException {
    try {
      for (String name : FILES) {
        copy(name, directory);
      }
      Path program = directory.resolve("gpu_program");
      List<String> command = new ArrayList<>(List.of(compiler()));
      command.addAll(FLAGS);
      FILES.stream().filter(name -> name.endsWith(".c")).forEach(command::add);
      command.addAll(List.of("-o", program.toString(), "-ldl", "-lpthread", "-lm"));
      run(command, directory);
      return program;
    } catch (IOException e) {
      throw new UncheckedIOException("cannot compile the program in " + directory, e);
    }
  }

  /**
   * Compiles a single-file library, to be preloaded.
   *
   * @param name the file's name, without its ending
   * @param directory where the library goes
   * @return the library
   * @throws IllegalStateException if there is no C compiler, or it fails
   */
  static Path compileLibrary(String name, Path directory) throws InterruptedException {
    try {
      copy(name + ".c", directory);
      Path library = directory.resolve(name + ".so");
      List<String> command = new ArrayList<>(List.of(compiler()));
      command.addAll(FLAGS);
      command.addAll(List.of("-shared", "-fPIC", name + ".c", "-o", library.toString()));
      run(command, directory);
      return library;
    } catch (IOException e) {
      throw new UncheckedIOException("cannot compile a library in " + directory, e);
    }
  }

  private static void copy(String name, Path directory) throws IOException {
    try (InputStream source =
        Objects.requireNonNull(ProgramSource.class.getResourceAsStream("c/" + name), name)) {
      Files.copy(source, directory.resolve(name));
    }
  }

  private static void run(List<String> command, Path directory)
      throws IOException, InterruptedException {
    Path log = directory.resolve("cc.log");
    Process process =
        new ProcessBuilder(command)
            .directory(directory.toFile())
            .redirectErrorStream(true)
            .redirectOutput(log.toFile())
            .start();
    if (process.waitFor() != 0) {
      throw new IllegalStateException("the C compiler failed:\n" + Files.readString(log));
    }
  }

  private static String compiler() {
    String path = Objects.requireNonNullElse(System.getenv("PATH"), "/usr/bin:/bin");
    return Stream.of("cc", "gcc", "clang")
        .filter(
            name ->
                Stream.of(path.split(":", -1))
                    .anyMatch(part -> Files.isExecutable(Path.of(part, name))))
        .findFirst()
        .orElseThrow(
            () ->
                new IllegalStateException(
                    "this needs a C compiler (cc, gcc or clang) on the PATH, and there is none;"
                        + " on Debian: apt-get install gcc libc6-dev"));
  }
}
