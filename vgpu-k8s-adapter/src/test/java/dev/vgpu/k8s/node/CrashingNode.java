package dev.vgpu.k8s.node;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.k8s.node.holding.Step;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;

/**
 * The {@code node} role as a process that kills itself with SIGKILL at a step: {@code API-URL
 * DIRECTORY RUN-DIRECTORY STEP TIMES}. With the step {@code none} it never does.
 */
final class CrashingNode {
  private CrashingNode() {}

  /** Runs until it is killed. */
  public static void main(String[] args) throws IOException, InterruptedException {
    String at = args[3];
    int[] left = {Integer.parseInt(args[4])};
    Step.Listener steps =
        step -> {
          if (step.name().equals(at) && --left[0] == 0) {
            die();
          }
        };
    GpuPool pool = GpuPool.open(GpuPoolOptions.builder().runDirectory(Path.of(args[2])).build());
    KubernetesClient api =
        new KubernetesClientBuilder()
            .withConfig(new ConfigBuilder().withMasterUrl(args[0]).build())
            .build();
    NodeAgent agent = NodeAgent.open(TestNode.settings(Path.of(args[1])), api, pool, steps);
    System.out.println("ready " + agent.metricsPort());
    System.out.flush();
    new CountDownLatch(1).await();
  }

  private static void die() {
    try {
      Process kill =
          new ProcessBuilder("sh", "-c", "kill -9 " + ProcessHandle.current().pid()).start();
      int ignored = kill.waitFor();
      new CountDownLatch(1).await();
    } catch (IOException | InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
