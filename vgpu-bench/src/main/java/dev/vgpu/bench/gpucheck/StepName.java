package dev.vgpu.bench.gpucheck;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** The steps, by their worth: the first ones run first. */
enum StepName {
  MACHINE(40, "which machine, GPU and driver; what doctor says", new MachineStep()),
  PROGRAMS(75, "the sample programs, bare and under vgpu", new ProgramsStep()),
  COSTS(60, "what vgpu adds to a launch, an allocation, a start", new CostsStep()),
  QUOTA(60, "quotas, and the ledger against NVML", new QuotaStep()),
  SHARES(130, "shares of the GPU's time by kernel length", new SharesStep()),
  LEVEL2(60, "how long one kernel waits for long ones", new ArrivalStep()),
  TORCH(110, "PyTorch: training, inference, the caching allocator", new TorchStep()),
  COLOCATION(75, "requests beside training loops", new ColocationStep()),
  SUSPEND(60, "suspending and resuming", new SuspendStep()),
  FIDELITY(60, "the same programs on the GPU and on the emulator", new FidelityStep());

  private final int limitSeconds;
  private final String what;
  private final Step step;

  StepName(int limitSeconds, String what, Step step) {
    this.limitSeconds = limitSeconds;
    this.what = what;
    this.step = step;
  }

  int limitSeconds() {
    return limitSeconds;
  }

  String what() {
    return what;
  }

  Step step() {
    return step;
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
