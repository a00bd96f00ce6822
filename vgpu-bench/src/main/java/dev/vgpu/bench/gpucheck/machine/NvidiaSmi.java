package dev.vgpu.bench.gpucheck.machine;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The output of {@code nvidia-smi}. Values that it does not know, or a GPU does not have, are left
 * out. Immutable.
 *
 * @param file the program
 * @param work a directory for its output
 */
public record NvidiaSmi(Path file, Path work) {
  static final String TOTAL = "memory.total";
  static final String RESERVED = "memory.reserved";
  static final String USED = "memory.used";
  static final String MIG_MODE = "mig.mode.current";
  static final String COMPUTE_MODE = "compute_mode";
  static final String NAME = "name";
  static final String DRIVER = "driver_version";

  private static final List<String> FIELDS =
      List.of(NAME, DRIVER, TOTAL, RESERVED, USED, MIG_MODE, COMPUTE_MODE);
  private static final List<String> PROCESS_FIELDS = List.of("pid", "used_gpu_memory");
  private static final double SECONDS = 10;

  /** The installed one. */
  public static Optional<NvidiaSmi> find(Path work) {
    return Place.onPath("nvidia-smi").map(file -> new NvidiaSmi(file, work));
  }

  /** {@return the fields of each GPU, by UUID; sizes in MiB} */
  public Map<String, Map<String, String>> gpus() throws InterruptedException {
    Map<String, Map<String, String>> rows = new LinkedHashMap<>();
    Done all = ask("gpu", "uuid", FIELDS);
    if (all.isOk()) {
      addRows(all.out(), FIELDS, rows);
      return rows;
    }
    // An old version rejects the whole query for one unknown field.
    Done last = all;
    for (String field : FIELDS) {
      last = ask("gpu", "uuid", List.of(field));
      if (last.isOk()) {
        addRows(last.out(), List.of(field), rows);
      }
    }
    if (rows.isEmpty()) {
      throw new IllegalStateException("nvidia-smi tells of no GPU: " + last.why() + last.out());
    }
    return rows;
  }

  /** {@return the memory of each process with a context, by the GPU's UUID and by pid; in MiB} */
  public Map<String, Map<Long, String>> processes() throws InterruptedException {
    Done done = ask("compute-apps", "gpu_uuid", PROCESS_FIELDS);
    if (!done.isOk()) {
      throw new IllegalStateException("nvidia-smi tells of no processes: " + done.why());
    }
    Map<String, Map<Long, String>> processes = new HashMap<>();
    for (List<String> row : rows(done.out(), PROCESS_FIELDS.size())) {
      processes
          .computeIfAbsent(row.get(0), none -> new HashMap<>())
          .put(Long.valueOf(row.get(1)), row.get(2));
    }
    return processes;
  }

  /** {@return its output, or why it fails; for people} */
  public String text(String... arguments) throws InterruptedException {
    List<String> command = new ArrayList<>(List.of(file.toString()));
    command.addAll(List.of(arguments));
    Done done = Done.run(command, variables -> {}, work, SECONDS);
    return done.isOk() ? done.out() : done.why() + "\n" + done.out();
  }

  private Done ask(String what, String key, List<String> fields) throws InterruptedException {
    return Done.run(
        List.of(
            file.toString(),
            "--query-" + what + "=" + key + "," + String.join(",", fields),
            "--format=csv,noheader,nounits"),
        variables -> {},
        work,
        SECONDS);
  }

  static void addRows(String text, List<String> fields, Map<String, Map<String, String>> into) {
    for (List<String> row : rows(text, fields.size())) {
      Map<String, String> values = into.computeIfAbsent(row.get(0), none -> new LinkedHashMap<>());
      for (int i = 0; i < fields.size(); i++) {
        if (isTold(row.get(i + 1))) {
          values.put(fields.get(i), row.get(i + 1));
        }
      }
    }
  }

  /** A row begins with its subject; other lines are messages. */
  private static List<List<String>> rows(String text, int fields) {
    List<List<String>> rows = new ArrayList<>();
    for (String line : text.split("\\R", -1)) {
      List<String> row = new ArrayList<>();
      for (String cell : line.split(",", -1)) {
        row.add(cell.strip());
      }
      if (row.size() == fields + 1 && row.get(0).startsWith("GPU-")) {
        rows.add(row);
      }
    }
    return rows;
  }

  /** Not {@code [N/A]}, {@code [Not Supported]}, {@code [Insufficient Permissions]} or the like. */
  static boolean isTold(String value) {
    return !value.isEmpty() && !value.startsWith("[") && !value.equals("N/A");
  }
}
