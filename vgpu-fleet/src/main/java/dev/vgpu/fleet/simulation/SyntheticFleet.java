package dev.vgpu.fleet.simulation;

import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.request.MemorySize;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * A large synthetic cluster for measuring decision times. Three of four nodes have 8 GPUs, the
 * fourth has 16. Requests are for shares, whole GPUs and whole nodes.
 */
public final class SyntheticFleet {
  private static final int SHAPES = 120;
  private static final int RACK = 32;
  private static final MemorySize CARD = MemorySize.ofGibibytes(80);

  private SyntheticFleet() {}

  /**
   * {@return the trace; its jobs all arrive at 0 and run for one second}
   *
   * @param nodes the number of nodes; there are ten times as many GPUs
   * @param seed determines the requests
   */
  public static Trace of(int nodes, long seed) {
    Random random = new Random(seed);
    List<NodeSpec> specs = new ArrayList<>();
    for (int i = 0; i < nodes; i++) {
      int gpus = i % 4 == 3 ? 16 : 8;
      specs.add(
          NodeSpec.of(
                  "node-" + i,
                  i % 3 == 0 ? "H100" : "A100",
                  gpus,
                  CARD,
                  12_000 * gpus,
                  MemorySize.ofGibibytes(64L * gpus))
              .inRack("rack-" + i / RACK));
    }
    List<Job> jobs = new ArrayList<>();
    List<Request> shapes = new ArrayList<>();
    for (int i = 0; i < SHAPES; i++) {
      shapes.add(shape("shape-" + i, random));
    }
    for (int i = 0; i < 20_000; i++) {
      // A few shapes are frequent, many are rare.
      int shape = (int) (SHAPES * Math.pow(random.nextDouble(), 2.5));
      Request request = shapes.get(shape).named("job-" + i);
      jobs.add(new Job(request.name(), List.of(request), 0, 1));
    }
    return new Trace("synthetic", specs, jobs);
  }

  private static Request shape(String name, Random random) {
    Request.Builder request = Request.builder(name);
    double kind = random.nextDouble();
    int gpus = 1;
    if (kind < 0.55) {
      request.share(5 * (1 + random.nextInt(19)));
      request.memory(MemorySize.ofGibibytes(2L * random.nextInt(20)));
    } else if (kind < 0.85) {
      request.wholeGpus(1);
    } else {
      gpus = List.of(2, 4, 8).get(random.nextInt(3));
      request.wholeGpus(gpus);
    }
    int cpu = 500 * (1 + random.nextInt(20));
    return request.host(cpu * gpus, MemorySize.ofGibibytes(1 + random.nextInt(32))).build();
  }
}
