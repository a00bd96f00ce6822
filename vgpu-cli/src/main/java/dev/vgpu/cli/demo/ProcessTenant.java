package dev.vgpu.cli.demo;

import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The programs that share the emulated device, each under a virtual GPU of its own. */
enum ProcessTenant {
  /** Half of the device, never more. */
  FIXED("fixed-50", SharePolicy.FIXED_SHARE, 50, PreemptionClass.OFFLINE, 2048, "spin"),
  /** At least 30 percent. */
  BURST("burst-30", SharePolicy.BURST_SHARE, 30, PreemptionClass.OFFLINE, 3072, "spin"),
  /** What is left. */
  REST("best-effort", SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE, 4096, "spin"),
  /** Requests that cannot wait. */
  ONLINE("online", SharePolicy.BURST_SHARE, 50, PreemptionClass.ONLINE, 1024, "burst");

  private final String title;
  private final SharePolicy policy;
  private final int percent;
  private final PreemptionClass preemptionClass;
  private final int memoryMib;
  private final String program;

  ProcessTenant(
      String title,
      SharePolicy policy,
      int percent,
      PreemptionClass preemptionClass,
      int memoryMib,
      String program) {
    this.title = title;
    this.policy = policy;
    this.percent = percent;
    this.preemptionClass = preemptionClass;
    this.memoryMib = memoryMib;
    this.program = program;
  }

  /** {@return its name for people} */
  String title() {
    return title;
  }

  /** {@return the share that it asks for, in percent; 0: none} */
  int percent() {
    return percent;
  }

  /** {@return what it asks for} */
  VirtualGpuRequest request() {
    VirtualGpuRequest.Builder builder =
        VirtualGpuRequest.builder()
            .name(title)
            .memory(MemorySize.ofMebibytes(memoryMib))
            .policy(policy)
            .preemptionClass(preemptionClass);
    if (percent > 0) {
      builder.computePercent(percent);
    }
    return builder.build();
  }

  /** {@return the program, and its arguments: no two have kernels of one length} */
  List<String> command(double seconds) {
    List<String> own =
        switch (this) {
          case FIXED -> List.of("--us=2000", "--grid=132", "--sync=1", "--hold=1GiB");
          case BURST -> List.of("--us=300", "--grid=4096", "--sync=8", "--hold=1536MiB");
          case REST -> List.of("--us=1000", "--grid=30000", "--sync=0", "--hold=2GiB");
          case ONLINE -> List.of("--rate=30", "--kernels=10", "--us=500", "--poisson");
        };
    List<String> command = new ArrayList<>(List.of(program, "--json"));
    command.add(String.format(Locale.ROOT, "--seconds=%.3f", seconds));
    command.addAll(own);
    return command;
  }
}
