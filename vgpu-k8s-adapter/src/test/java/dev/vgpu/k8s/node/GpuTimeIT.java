package dev.vgpu.k8s.node;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.fabric8.kubernetes.api.model.Pod;
import java.io.IOException;
import java.net.URI;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Programs in containers of both ways: what the metrics say of them adds up to the devices'. */
class GpuTimeIT {
  private TestNode node;
  private StrictDevices devices;
  private NodeAgent agent;

  @BeforeEach
  void open() throws Exception {
    node = new TestNode();
    devices = node.devices();
    agent = node.agent();
    node.kubelet.register();
    TestNode.await("registered", () -> devices.registrations.get() == 1);
    assertThat(devices.connect()).hasSize(8);
  }

  @AfterEach
  void close() throws IOException {
    agent.close();
    devices.close();
    node.close();
  }

  private double sum(String name, int gpu) {
    try {
      URI uri = URI.create("http://localhost:" + agent.metricsPort() + "/metrics");
      String text = new String(uri.toURL().openStream().readAllBytes(), UTF_8);
      return text.lines()
          .filter(line -> line.startsWith(name + "{gpu=\"" + gpu + "\""))
          .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' '))))
          .sum();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void thePodsTimesAddUpToTheDevices() throws Exception {
    Pod ignored = node.pod("a", node.reservation(30, "1Gi"));
    String slot = devices.admit("a", "main", "slot-0");
    devices.preStart("slot-0");
    String claim =
        node.kubelet
            .prepare(node.create(ClaimJson.allocated("one", node.device(0), 30, "1Gi")))
            .get(0)
            .getCdiDeviceIds(0);
    String both =
        node.kubelet
            .prepare(
                node.create(
                    ClaimJson.allocated(
                        "two", List.of(node.device(0), node.device(1)), 30, List.of("1Gi", "1Gi"))))
            .get(0)
            .getCdiDeviceIds(0);
    List<Process> programs =
        List.of(
            node.program(slot, "spin", "--us", "1000", "--count", "300"),
            node.program(claim, "spin", "--us", "1000", "--count", "200"),
            node.program(both, "spin", "--us", "1000", "--count", "100", "--device", "1"));
    for (Process program : programs) {
      byte[] said = program.getInputStream().readAllBytes();
      assertThat(program.waitFor()).as(new String(said, UTF_8)).isZero();
    }
    assertThat(node.pool.leases()).hasSize(3);
    awaitMetered(0, 0.4);
    awaitMetered(1, 0.08);
  }

  /** A virtual GPU is metered once a second, maybe between one reading and the next. */
  private void awaitMetered(int gpu, double least) throws InterruptedException {
    TestNode.await(
        "the times on GPU " + gpu + " add up",
        () -> {
          double onDevice = sum("vgpu_device_gpu_time_seconds_total", gpu);
          double ofPods = sum("vgpu_gpu_time_seconds_total", gpu);
          return onDevice > least && Math.abs(onDevice - ofPods) < 0.001;
        });
  }
}
