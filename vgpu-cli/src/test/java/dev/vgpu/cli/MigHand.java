package dev.vgpu.cli;

import dev.vgpu.nvml.MigDriver;
import dev.vgpu.nvml.MigState;

/** Somebody else, who cuts the first GPU: makes an instance, and prints the device that it is. */
final class MigHand {
  private MigHand() {}

  public static void main(String[] args) {
    int start = Integer.parseInt(args[1]);
    try (MigDriver driver = MigDriver.open()) {
      MigState state = driver.gpus().get(0);
      var profile = state.geometry().orElseThrow().profile(args[0]).orElseThrow();
      int id = driver.create(state.gpu(), profile.id(), start, profile.memorySlices());
      int part = driver.createPart(state.gpu(), id, profile.computeSlices());
      driver.gpu(state.gpu()).instances().stream()
          .filter(each -> each.id() == id)
          .flatMap(each -> each.parts().stream())
          .filter(each -> each.id() == part)
          .forEach(each -> System.out.println(each.device()));
    }
  }
}
