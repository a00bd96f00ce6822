package dev.vgpu.cli.mig;

import dev.vgpu.nvml.mig.MigDriver;
import dev.vgpu.nvml.mig.MigState;

/**
 * Changes the MIG instances of the first GPU from outside vgpu: creates an instance and prints its
 * device, or destroys the instance of a device, whoever owns it.
 */
final class MigHand {
  private MigHand() {}

  public static void main(String[] args) {
    try (MigDriver driver = MigDriver.open()) {
      if (args[0].equals("destroy")) {
        destroy(driver, args[1]);
        return;
      }
      int start = Integer.parseInt(args[1]);
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

  private static void destroy(MigDriver driver, String device) {
    MigState state = driver.gpus().get(0);
    for (MigState.Instance each : state.instances()) {
      if (each.parts().stream().anyMatch(part -> part.device().value().equals(device))) {
        driver.destroyParts(state.gpu(), each.id());
        driver.destroy(state.gpu(), each.id());
        System.out.println("destroyed");
      }
    }
  }
}
