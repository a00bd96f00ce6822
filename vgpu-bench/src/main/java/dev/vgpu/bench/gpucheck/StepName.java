package dev.vgpu.bench.gpucheck;

import dev.vgpu.bench.gpucheck.step.ArrivalStep;
import dev.vgpu.bench.gpucheck.step.ChargedStep;
import dev.vgpu.bench.gpucheck.step.ClientsStep;
import dev.vgpu.bench.gpucheck.step.ColocationStep;
import dev.vgpu.bench.gpucheck.step.CostsStep;
import dev.vgpu.bench.gpucheck.step.DriverStep;
import dev.vgpu.bench.gpucheck.step.FidelityStep;
import dev.vgpu.bench.gpucheck.step.LeaveStep;
import dev.vgpu.bench.gpucheck.step.MachineStep;
import dev.vgpu.bench.gpucheck.step.MigStep;
import dev.vgpu.bench.gpucheck.step.MpsStep;
import dev.vgpu.bench.gpucheck.step.NvmlStep;
import dev.vgpu.bench.gpucheck.step.ProgramsStep;
import dev.vgpu.bench.gpucheck.step.QuotaStep;
import dev.vgpu.bench.gpucheck.step.RmStep;
import dev.vgpu.bench.gpucheck.step.SharesStep;
import dev.vgpu.bench.gpucheck.step.Step;
import dev.vgpu.bench.gpucheck.step.SuspendStep;
import dev.vgpu.bench.gpucheck.step.TorchStep;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * The steps, the most valuable first, which is the order in which they run. Each belongs to one of
 * two parts, and the limits of a part's steps fit into one run.
 */
enum StepName {
  MACHINE(1, 40, "which machine, GPU and driver; what doctor says"),
  PROGRAMS(1, 60, "the sample programs, bare and under vgpu"),
  TORCH(1, 150, "PyTorch: memory, training, inference, two tenants 50/50"),
  CLIENTS(1, 70, "which driver others get: by its names, the CUDA runtime, Numba, CuPy, JAX"),
  DRIVER(1, 45, "what the driver's calls take the host, and what waits for what"),
  CHARGED(1, 25, "GPU time that is charged, beside work whose time is known"),
  QUOTA(1, 60, "quotas, and the ledger against NVML"),
  LEAVE(1, 50, "programs that exit with work in flight"),
  LEVEL2(2, 75, "how long one kernel waits for long ones"),
  COSTS(2, 55, "what vgpu adds to a launch, a kernel, an allocation, a start"),
  SHARES(2, 105, "shares of the GPU's time by kernel length"),
  COLOCATION(2, 50, "requests beside training loops"),
  NVML(2, 15, "NVML beside what nvidia-smi says"),
  MIG(2, 10, "how the GPU could be cut into MIG instances: only read"),
  MPS(2, 30, "MPS in a directory of its own: start, limit, stop"),
  SUSPEND(2, 50, "suspending and resuming"),
  RM(2, 50, "the kernel module's ledger beside nvidia-smi; other programs' channels; vgpu-turns"),
  FIDELITY(2, 60, "the same programs on the GPU and on the emulator");

  static final int PARTS = 2;

  private final int part;
  private final int limitSeconds;
  private final String what;

  StepName(int part, int limitSeconds, String what) {
    this.part = part;
    this.limitSeconds = limitSeconds;
    this.what = what;
  }

  int part() {
    return part;
  }

  int limitSeconds() {
    return limitSeconds;
  }

  String what() {
    return what;
  }

  /** {@return a new instance of the step} */
  Step step() {
    return switch (this) {
      case MACHINE -> new MachineStep();
      case PROGRAMS -> new ProgramsStep();
      case TORCH -> new TorchStep();
      case CLIENTS -> new ClientsStep();
      case DRIVER -> new DriverStep();
      case CHARGED -> new ChargedStep();
      case QUOTA -> new QuotaStep();
      case LEAVE -> new LeaveStep();
      case LEVEL2 -> new ArrivalStep();
      case COSTS -> new CostsStep();
      case SHARES -> new SharesStep();
      case COLOCATION -> new ColocationStep();
      case NVML -> new NvmlStep();
      case MIG -> new MigStep();
      case MPS -> new MpsStep();
      case SUSPEND -> new SuspendStep();
      case RM -> new RmStep();
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
