package dev.vgpu.fleet.simulation;

import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Reads a cluster and its jobs from a text file. Each line describes nodes or a job. Empty lines
 * and lines that begin with {@code #} are ignored.
 *
 * <pre>
 * node,NAME,COUNT,MODEL,GPUS,GPU_MEMORY,CPU_MILLIS,HOST_MEMORY,RACK
 * job,NAME,MEMBERS,ARRIVAL_S,RUN_S,CLASS,WHAT,MEMORY,CPU_MILLIS,HOST_MEMORY,MODELS
 * </pre>
 *
 * <p>WHAT is {@code 2} for two whole GPUs, {@code 50%} for a share of one, {@code 2x50%} for shares
 * of two, or {@code 0} for no GPU. MODELS are separated by {@code |}; if empty, any model is
 * allowed.
 */
public final class FleetFile {
  private static final int NODE_FIELDS = 9;
  private static final int JOB_FIELDS = 11;

  private final List<NodeSpec> nodes = new ArrayList<>();
  private final List<Job> jobs = new ArrayList<>();

  private FleetFile() {}

  /**
   * Reads a file.
   *
   * @param file the file
   * @return the trace, in order of arrival
   * @throws IOException if it cannot be read
   * @throws IllegalArgumentException if a line is wrong; the message names the line
   */
  public static Trace read(Path file) throws IOException {
    FleetFile read = new FleetFile();
    int number = 0;
    for (String line : Files.readAllLines(file)) {
      number++;
      if (!line.isBlank() && !line.startsWith("#")) {
        try {
          read.line(line.strip().split(",", -1));
        } catch (IllegalArgumentException | ArithmeticException e) {
          throw new IllegalArgumentException(file + ", line " + number + ": " + e.getMessage(), e);
        }
      }
    }
    if (read.nodes.isEmpty()) {
      throw new IllegalArgumentException(file + ": there is no line that begins with node");
    }
    read.jobs.sort((a, b) -> Double.compare(a.arrivalS(), b.arrivalS()));
    return new Trace(String.valueOf(file.getFileName()), read.nodes, read.jobs);
  }

  private void line(String[] fields) {
    switch (fields[0]) {
      case "node" -> node(counted(fields, NODE_FIELDS));
      case "job" -> jobs.add(job(counted(fields, JOB_FIELDS)));
      default -> throw new IllegalArgumentException("a line begins with node or job: " + fields[0]);
    }
  }

  private static String[] counted(String[] fields, int expected) {
    if (fields.length != expected) {
      throw new IllegalArgumentException(
          fields[0] + " has " + expected + " fields, here are " + fields.length);
    }
    return fields;
  }

  private void node(String[] fields) {
    int count = number(fields[2]);
    for (int i = 0; i < count; i++) {
      nodes.add(
          NodeSpec.of(
                  count == 1 ? fields[1] : fields[1] + "-" + i,
                  fields[3],
                  number(fields[4]),
                  MemorySize.fromString(fields[5]),
                  number(fields[6]),
                  MemorySize.fromString(fields[7]))
              .inRack(fields[8]));
    }
  }

  private static Job job(String[] fields) {
    int members = number(fields[2]);
    double arrival = seconds(fields[3]);
    double run = seconds(fields[4]);
    if (members < 1 || run <= 0) {
      throw new IllegalArgumentException(
          "a job has members and takes time: members=" + members + " run=" + run);
    }
    List<Request> requests = new ArrayList<>();
    for (int i = 0; i < members; i++) {
      requests.add(request(fields, members == 1 ? fields[1] : fields[1] + "-" + i));
    }
    return new Job(fields[1], requests, arrival, run);
  }

  private static Request request(String[] fields, String name) {
    Request.Builder request = Request.builder(name);
    request.preemptionClass(PreemptionClass.valueOf(fields[5].toUpperCase(Locale.ROOT)));
    String what = fields[6];
    int times = what.indexOf('x');
    if (what.endsWith("%")) {
      int count = times < 0 ? 1 : number(what.substring(0, times));
      request.shares(count, number(what.substring(times + 1, what.length() - 1)));
    } else if (number(what) > 0) {
      request.wholeGpus(number(what));
    }
    if (!fields[7].isEmpty()) {
      request.memory(MemorySize.fromString(fields[7]));
    }
    MemorySize host = fields[9].isEmpty() ? MemorySize.ZERO : MemorySize.fromString(fields[9]);
    request.host(fields[8].isEmpty() ? 0 : number(fields[8]), host);
    if (!fields[10].isEmpty()) {
      request.models(Set.copyOf(Arrays.asList(fields[10].split("\\|", -1))));
    }
    return request.build();
  }

  private static int number(String text) {
    try {
      return Integer.parseInt(text);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("not a whole number: '" + text + "'", e);
    }
  }

  private static double seconds(String text) {
    double value;
    try {
      value = Double.parseDouble(text);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("not a time in seconds: '" + text + "'", e);
    }
    if (!(value >= 0) || Double.isInfinite(value)) {
      throw new IllegalArgumentException("a time is 0 or more: '" + text + "'");
    }
    return value;
  }
}
