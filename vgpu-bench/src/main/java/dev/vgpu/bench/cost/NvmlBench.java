package dev.vgpu.bench.cost;

import dev.vgpu.bench.report.Report;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * The cost of reading GPUs through NVML: a snapshot of eight GPUs with a hundred processes, a
 * million polls of one, and watching eight at 1 Hz. Uses the emulator, in separate JVMs.
 */
public final class NvmlBench {
  private static final int GPUS = 8;
  private static final int PROCESSES = 100;

  private final Report report;
  private final boolean quick;

  /** Creates the benchmark. */
  public NvmlBench(Report report, boolean quick) {
    this.report = report;
    this.quick = quick;
  }

  /** Runs it, and adds to the report. */
  public void run() throws IOException, InterruptedException {
    StringBuilder processes = new StringBuilder();
    for (int gpu = 0; gpu < GPUS; gpu++) {
      int count = (PROCESSES + GPUS - 1 - gpu) / GPUS;
      processes.append("processes.").append(gpu).append('=').append(count).append('\n');
    }
    report.line("%-44s%14s%14s%14s", "NVML, over the emulator", "median", "p99", "worst");
    measure("snapshot", GPUS, processes.toString(), quick ? 300 : 3_000);
    measure("polls", 1, "processes=4\n", quick ? 100_000 : 1_000_000);
    measure("watch", GPUS, processes.toString(), quick ? 5 : 30);
  }

  private void measure(String what, int gpus, String settings, int times)
      throws IOException, InterruptedException {
    report.progress("nvml " + what + ", " + times + " times");
    Path directory = Files.createTempDirectory("vgpu-nvml");
    try {
      Path emulator = Files.createDirectory(directory.resolve("emulator"));
      Files.writeString(emulator.resolve("nvml"), settings);
      ProcessBuilder builder =
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home", ""), "bin", "java").toString(),
                  "-XX:+UseSerialGC",
                  "-Xms64m", // so that growth of the heap does not count as growth of the process
                  "-Xmx64m",
                  "-XX:+AlwaysPreTouch",
                  "-cp",
                  System.getProperty("java.class.path", ""),
                  NvmlPolls.class.getName(),
                  what,
                  Integer.toString(times))
              .redirectError(ProcessBuilder.Redirect.INHERIT);
      Map<String, String> environment = builder.environment();
      environment.keySet().removeIf(name -> name.startsWith("VGPU_") || name.equals("LD_PRELOAD"));
      environment.put("VGPU_EMULATOR_DIR", emulator.toString());
      environment.put("VGPU_EMULATOR", "devices=" + gpus + ",memory=80GiB");
      Process process = builder.start();
      try (BufferedReader lines =
          new BufferedReader(
              new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          String[] words = line.split("\t", -1);
          if (words.length == 2) {
            report.figure("nvml_" + words[0], Double.valueOf(words[1]));
          } else {
            report.line("%s", line);
          }
        }
      }
      if (process.waitFor() != 0) {
        throw new IllegalStateException("the JVM that reads NVML failed: " + what);
      }
    } finally {
      remove(directory);
    }
  }

  private static void remove(Path directory) throws IOException {
    List<Path> files;
    try (Stream<Path> all = Files.walk(directory)) {
      files = all.sorted(Comparator.reverseOrder()).toList();
    }
    for (Path file : files) {
      Files.deleteIfExists(file);
    }
  }
}
