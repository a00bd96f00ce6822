package dev.vgpu.k8s.node;

import dev.vgpu.nvml.mig.MigDriver;
import dev.vgpu.nvml.mig.MigState;
import dev.vgpu.nvml.mig.plan.MigProfile;

/**
 * Makes an instance of the first GPU from outside vgpu, and prints its id: {@code PROFILE START}.
 */
final class MigHand {
  private MigHand() {}

  public static void main(String[] args) {
    try (MigDriver driver = MigDriver.open()) {
      MigState state = driver.gpus().get(0);
      MigProfile profile = state.geometry().orElseThrow().profile(args[0]).orElseThrow();
      int start = Integer.parseInt(args[1]);
      System.out.println(driver.create(state.gpu(), profile.id(), start, profile.memorySlices()));
    }
  }
}
