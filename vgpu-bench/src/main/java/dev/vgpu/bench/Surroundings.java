package dev.vgpu.bench;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.files.ProcessStat;
import dev.vgpu.files.ProcessStat.Field;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.Map;

/** A description of the machine and the sources, which goes with the figures. */
final class Surroundings {
  private Surroundings() {}

  static Map<String, Object> figures() {
    Map<String, Object> figures = new LinkedHashMap<>();
    figures.put("processors", Runtime.getRuntime().availableProcessors());
    figures.put("processor", processor());
    figures.put("os", System.getProperty("os.name") + " " + System.getProperty("os.version"));
    figures.put("java_version", System.getProperty("java.version"));
    figures.put("load_average", loadAverage());
    figures.put("scheduling", scheduling());
    figures.put("commit", commit());
    figures.put("ended", NanoClock.now().truncatedTo(ChronoUnit.SECONDS).toString());
    return figures;
  }

  private static String processor() {
    try {
      return Files.readAllLines(Path.of("/proc/cpuinfo"), UTF_8).stream()
          .filter(line -> line.startsWith("model name"))
          .map(line -> line.substring(line.indexOf(':') + 1).strip())
          .findFirst()
          .orElse("unknown");
    } catch (IOException e) {
      return "unknown";
    }
  }

  /** Of the last minute. Load of other programs makes figures worse. */
  private static String loadAverage() {
    try {
      return Files.readString(Path.of("/proc/loadavg")).split(" ", 2)[0];
    } catch (IOException e) {
      return "unknown";
    }
  }

  /** The scheduling policy of our processes: with priority over other processes, or not. */
  private static String scheduling() {
    try {
      ProcessStat stat = ProcessStat.read(Path.of("/proc/self"));
      String nice = stat.text(Field.NICE);
      String policy = stat.text(Field.POLICY);
      return switch (policy) {
        case "0" -> nice.equals("0") ? "normal" : "nice " + nice;
        case "1" -> "first in, first out";
        case "2" -> "round robin";
        default -> "policy " + policy;
      };
    } catch (IOException e) {
      return "unknown";
    }
  }

  private static String commit() {
    String home = System.getenv("VGPU_HOME");
    try {
      Process git =
          new ProcessBuilder(
                  "git", "-C", home == null ? "." : home, "describe", "--always", "--dirty")
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      String answer = new String(git.getInputStream().readAllBytes(), UTF_8).strip();
      return git.waitFor() == 0 && !answer.isEmpty() ? answer : "unknown";
    } catch (IOException e) {
      return "unknown";
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return "unknown";
    }
  }
}
