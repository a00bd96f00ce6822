package dev.vgpu.spring;

import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** A configured pool or virtual GPU is not available, so the service does not start. */
public final class VgpuStartException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String action;

  private VgpuStartException(String message, String action, @Nullable Throwable cause) {
    super(message, cause);
    this.action = action;
  }

  static VgpuStartException ofModel(String model, String problem, String action) {
    return new VgpuStartException(
        "Model '" + model + "' gets no virtual GPU: " + problem + ".", action, null);
  }

  static VgpuStartException ofModel(String model, RuntimeException problem, String action) {
    return new VgpuStartException(
        "Model '" + model + "' gets no virtual GPU: " + problem.getMessage() + ".",
        action,
        problem);
  }

  static VgpuStartException ofPool(String property, RuntimeException problem) {
    return new VgpuStartException(
        "The GPUs cannot be shared as asked: " + problem.getMessage() + ".",
        "Change the property " + property + ".",
        problem);
  }

  static VgpuStartException ofOpening(RuntimeException problem) {
    return new VgpuStartException(
        "The GPUs of this node cannot be opened: " + problem.getMessage() + ".",
        "`vgpu doctor` says what is there. The properties below vgpu.pool say who shares the GPUs"
            + " and where.",
        problem);
  }

  static VgpuStartException ofDashboard(RuntimeException problem, String action) {
    return new VgpuStartException(
        "The dashboard cannot be served as asked: " + problem.getMessage() + ".", action, problem);
  }

  static VgpuStartException ofListening(String address, IOException problem) {
    return new VgpuStartException(
        "The dashboard cannot listen on " + address + ": " + problem.getMessage() + ".",
        "Change vgpu.dashboard.port or vgpu.dashboard.address, end the program that listens there,"
            + " or set vgpu.dashboard.enabled to false.",
        problem);
  }

  /** {@return what to change in the configuration} */
  public String action() {
    return action;
  }
}
