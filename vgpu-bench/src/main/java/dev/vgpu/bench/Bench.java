package dev.vgpu.bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The benchmarks' main class: {@code Bench [turns] [--quick] [--json]}. */
public final class Bench {
  private static final String USAGE =
      """
      usage: vgpu bench [turns] [--quick] [--json]
        turns    what turns inside a JVM cost, beside a fair semaphore and a fair lock
        --quick  a tenth of the time, with rougher figures
        --json   one JSON object on standard output
      """;

  private Bench() {}

  /**
   * Runs benchmarks.
   *
   * @param args see the usage
   * @throws Exception if a benchmark fails
   */
  public static void main(String[] args) throws Exception {
    List<String> names = new ArrayList<>(List.of(args));
    boolean quick = names.remove("--quick");
    boolean json = names.remove("--json");
    names.remove("turns");
    if (names.contains("--help") || names.contains("-h")) {
      System.out.print(USAGE);
      return;
    }
    if (!names.isEmpty()) {
      System.err.print("bench: what is '" + names.get(0) + "'?\n" + USAGE);
      System.exit(2);
    }
    TurnsBench bench = new TurnsBench(quick, what -> System.err.println("bench: " + what));
    bench.run();
    Map<String, Object> all = new LinkedHashMap<>(bench.figures());
    all.put("processors", Runtime.getRuntime().availableProcessors());
    all.put("java_version", System.getProperty("java.version"));
    System.out.print(
        json
            ? new ObjectMapper().writerWithDefaultPrettyPrinter().writeValueAsString(all) + "\n"
            : bench.text());
  }
}
