package dev.vgpu.bench.gpucheck;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** The steps, by their worth: the first ones run first. */
enum StepName {
  MACHINE(40, "which machine, GPU and driver; what doctor says"),
  NVML(30, "NVML beside what nvidia-smi says"),
  MIG(20, "how the GPU could be cut into MIG instances: only read"),
  PROGRAMS(75, "the sample programs, bare and under vgpu"),
  COSTS(60, "what vgpu adds to a launch, an allocation, a start"),
  QUOTA(60, "quotas, and the ledger against NVML"),
  SHARES(130, "shares of the GPU's time by kernel length"),
  LEVEL2(80, "how long one kernel waits for long ones"),
  TORCH(110, "PyTorch: training, inference, the caching allocator"),
  COLOCATION(75, "requests beside training loops"),
  SUSPEND(60, "suspending and resuming"),
  MPS(75, "MPS in a directory of its own: start, limit, stop"),
  FIDELITY(60, "the same programs on the GPU and on the emulator");

  private final int limitSeconds;
  private final String what;

  StepName(int limitSeconds, String what) {
    this.limitSeconds = limitSeconds;
    this.what = what;
  }

  int limitSeconds() {
    return limitSeconds;
  }

  String what() {
    return what;
  }

  /** {@return the step, new} */
  Step step() {
    return switch (this) {
      case MACHINE -> new MachineStep();
      case NVML -> new NvmlStep();
      case MIG -> new MigStep();
      case PROGRAMS -> new ProgramsStep();
      case COSTS -> new CostsStep();
      case QUOTA -> new QuotaStep();
      case SHARES -> new SharesStep();
      case LEVEL2 -> new ArrivalStep();
      case TORCH -> new TorchStep();
      case COLOCATION -> new ColocationStep();
      case SUSPEND -> new SuspendStep();
      case MPS -> new MpsStep();
      case FIDELITY -> new FidelityStep();
    };
  }

  String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  static StepName of(String word) {
    for (StepName name : values()) {
      if (name.word().equals(word)) {
        return name;
      }
    }
    List<String> words = Arrays.stream(values()).map(StepName::word).toList();
    throw new IllegalArgumentException("a step is one of " + words + ", not '" + word + "'");
  }
}
