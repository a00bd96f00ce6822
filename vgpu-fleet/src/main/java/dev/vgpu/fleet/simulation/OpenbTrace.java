package dev.vgpu.fleet.simulation;

import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.request.MemorySize;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;

/**
 * Reads the format of the trace "openb", cluster-trace-gpu-v2023 of Alibaba
 * (https://github.com/alibaba/clusterdata): a file of nodes and files of pods. The data itself is
 * not part of this module.
 */
public final class OpenbTrace {
  private static final String NODES = "openb_node_list_gpu_node.csv";
  private static final int PERCENT = 10;
  private static final int WHOLE = 1000;

  private OpenbTrace() {}

  /**
   * Reads a cluster and a list of pods.
   *
   * @param directory the directory of the files
   * @param list for example {@code default} or {@code gpushare40}
   * @return the trace, in order of arrival
   * @throws IOException if a file cannot be read
   * @throws IllegalArgumentException if a line has another format
   */
  public static Trace read(Path directory, String list) throws IOException {
    List<NodeSpec> nodes = new ArrayList<>();
    for (String[] row : rows(directory.resolve(NODES))) {
      nodes.add(
          NodeSpec.of(
              row[0],
              row[4],
              Integer.parseInt(row[3]),
              MemorySize.ofGibibytes(16),
              Integer.parseInt(row[1]),
              MemorySize.ofMebibytes(Long.parseLong(row[2]))));
    }
    List<Job> jobs = new ArrayList<>();
    for (String[] row : rows(directory.resolve("openb_pod_list_" + list + ".csv"))) {
      jobs.add(job(row));
    }
    jobs.sort((a, b) -> Double.compare(a.arrivalS(), b.arrivalS()));
    return new Trace(list, nodes, jobs);
  }

  private static List<String[]> rows(Path file) throws IOException {
    List<String[]> rows = new ArrayList<>();
    for (String line : Files.readAllLines(file)) {
      if (!line.isBlank()) {
        rows.add(line.split(",", -1));
      }
    }
    return rows.subList(Math.min(1, rows.size()), rows.size());
  }

  private static Job job(String[] row) {
    Request.Builder request = Request.builder(row[0]);
    request.host(Integer.parseInt(row[1]), MemorySize.ofMebibytes(Long.parseLong(row[2])));
    int gpus = Integer.parseInt(row[3]);
    int milli = Integer.parseInt(row[4]);
    if (gpus > 0 && milli == WHOLE) {
      request.wholeGpus(gpus);
    } else if (gpus > 0) {
      request.shares(gpus, Math.max(1, milli / PERCENT));
    }
    boolean hasTimes = row.length > 9;
    if (row.length > 5 && !row[5].isEmpty()) {
      request.models(Set.copyOf(Arrays.asList(row[5].split("\\|", -1))));
    }
    double arrival = hasTimes ? Double.parseDouble(row[8]) : 0;
    double end = hasTimes ? Double.parseDouble(row[9]) : 0;
    return new Job(row[0], List.of(request.build()), arrival, Math.max(1, end - arrival));
  }
}
