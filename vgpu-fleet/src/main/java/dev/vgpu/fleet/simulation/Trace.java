package dev.vgpu.fleet.simulation;

import dev.vgpu.fleet.model.NodeSpec;
import java.util.List;

/**
 * A cluster and its jobs. Immutable.
 *
 * @param name its name, as shown in tables
 * @param nodes the cluster
 * @param jobs the jobs, in order of arrival
 */
public record Trace(String name, List<NodeSpec> nodes, List<Job> jobs) {
  /** Copies the lists. */
  public Trace {
    nodes = List.copyOf(nodes);
    jobs = List.copyOf(jobs);
  }
}
