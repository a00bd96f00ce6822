package dev.vgpu.bench.demo.process;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The programs that share the emulated device, each under its own virtual GPU. Where the device is
 * divided in space, all of them have fixed shares, because such a part is neither lent nor left
 * over.
 */
enum ProcessTenant {
  /** Half of the device, and never more. */
  FIXED("fixed", SharePolicy.FIXED_SHARE, PreemptionClass.OFFLINE, 2048, "spin"),
  /** At least 30 percent. */
  BURST("burst", SharePolicy.BURST_SHARE, PreemptionClass.OFFLINE, 3072, "spin"),
  /** Whatever the others leave. */
  REST("best-effort", SharePolicy.BEST_EFFORT, PreemptionClass.OFFLINE, 4096, "spin"),
  /** Requests that must not wait. */
  ONLINE("online", SharePolicy.BURST_SHARE, PreemptionClass.ONLINE, 1024, "burst");

  /** The most memory that the smallest MIG instance of the demo's GPU can give, in MiB. */
  private static final int MOST_MIB_OF_A_SLICE = 1536;

  private final String word;
  private final SharePolicy policy;
  private final PreemptionClass preemptionClass;
  private final int memoryMib;
  private final String program;

  ProcessTenant(
      String word,
      SharePolicy policy,
      PreemptionClass preemptionClass,
      int memoryMib,
      String program) {
    this.word = word;
    this.policy = policy;
    this.preemptionClass = preemptionClass;
    this.memoryMib = memoryMib;
    this.program = program;
  }

  /** {@return the tenant's name for people} */
  String title(DemoBackend by) {
    if (this == ONLINE || policy(by) == SharePolicy.BEST_EFFORT) {
      return word;
    }
    return (by.isSpatial() ? FIXED.word : word) + "-" + by.percent(this);
  }

  private SharePolicy policy(DemoBackend by) {
    return by.isSpatial() ? SharePolicy.FIXED_SHARE : policy;
  }

  private int memoryMib(DemoBackend by) {
    return by.isSpatial() && this == REST ? MOST_MIB_OF_A_SLICE : memoryMib;
  }

  /** {@return the tenant's request} */
  VirtualGpuRequest request(DemoBackend by) {
    VirtualGpuRequest.Builder builder =
        VirtualGpuRequest.builder()
            .name(title(by))
            .memory(MemorySize.ofMebibytes(memoryMib(by)))
            .policy(policy(by))
            .preemptionClass(preemptionClass);
    by.demand(builder);
    if (by.percent(this) > 0) {
      builder.computePercent(by.percent(this));
    }
    return builder.build();
  }

  /** {@return the program and its arguments; each program's kernels have a different length} */
  List<String> command(DemoBackend by, double seconds) {
    List<String> own =
        switch (this) {
          case FIXED -> List.of("--us=2000", "--grid=132", "--sync=1", "--hold=1GiB");
          case BURST -> List.of("--us=300", "--grid=4096", "--sync=8", "--hold=1536MiB");
          case REST ->
              List.of(
                  "--us=1000", "--grid=30000", "--sync=0", "--hold=" + memoryMib(by) / 2 + "MiB");
          case ONLINE -> List.of("--rate=30", "--kernels=10", "--us=500", "--poisson");
        };
    List<String> command = new ArrayList<>(List.of(program, "--json"));
    command.add(String.format(Locale.ROOT, "--seconds=%.3f", seconds));
    command.addAll(own);
    return command;
  }
}
