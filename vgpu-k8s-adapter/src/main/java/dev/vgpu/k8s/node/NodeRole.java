package dev.vgpu.k8s.node;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuSettings;
import dev.vgpu.k8s.names.KubeletResource;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** The role {@code node}. */
@Command(
    name = "node",
    description = {
      "Give the pods of this node their virtual GPUs, by dynamic resource allocation and as a"
          + " device plugin. Ends on SIGTERM or SIGINT; containers that run keep what they have."
    })
public final class NodeRole implements Callable<Integer> {
  private static final String KUBELET = "/var/lib/kubelet";

  @Option(
      names = "--node-name",
      defaultValue = "${env:NODE_NAME:-}",
      description = "The node's name in the cluster. Default: $NODE_NAME.")
  private String node = "";

  @Option(
      names = "--kubelet",
      paramLabel = "DIR",
      defaultValue = KUBELET,
      description = "The kubelet's directory. Default: ${DEFAULT-VALUE}.")
  private Path kubelet = Path.of(KUBELET);

  @Option(
      names = "--cdi",
      paramLabel = "DIR",
      defaultValue = "/var/run/cdi",
      description = "Where the container runtime reads CDI files. Default: ${DEFAULT-VALUE}.")
  private Path cdi = Path.of("/var/run/cdi");

  @Option(
      names = "--slots",
      defaultValue = "0",
      description =
          "How many slots the device plugin offers, 0 to 1600; 0: it is off."
              + " Default: ${DEFAULT-VALUE}.")
  private int slots;

  @Option(
      names = "--resources",
      split = ",",
      paramLabel = "NAME",
      description =
          "Other systems' resources that the device plugin offers too, such as aliyun.com/gpu-mem."
              + " Needs --slots. Default: none.")
  private List<String> resources = List.of();

  @Option(
      names = "--metrics-port",
      defaultValue = "9401",
      description = "Where /metrics and /healthz are answered. Default: ${DEFAULT-VALUE}.")
  private int metricsPort;

  @Option(
      names = "--offline-floor",
      paramLabel = "PERCENT",
      defaultValue = "0",
      description =
          "What offline tenants of each GPU are left, 0 to 100. Default: ${DEFAULT-VALUE}.")
  private int offlineFloor;

  @Option(
      names = "--gang-claims",
      description =
          "Bind pods with claims only when vgpu-k8s scheduler --gang-claims says that their gangs"
              + " are complete. Pods then start up to 5 s later. Default: no.")
  private boolean hasGangClaims;

  /** Used by picocli, which then sets the options. */
  public NodeRole() {}

  private static KubeletResource resource(String name) {
    List<KubeletResource> others =
        Stream.of(KubeletResource.values()).filter(one -> one != KubeletResource.SLOT).toList();
    return others.stream()
        .filter(one -> one.resource().equals(name))
        .findFirst()
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "--resources has no "
                        + name
                        + ": there are "
                        + others.stream().map(KubeletResource::resource).toList()));
  }

  @Override
  public Integer call() throws IOException, InterruptedException {
    NodeSettings settings =
        new NodeSettings(
            node,
            kubelet.resolve("plugins/vgpu.dev"),
            kubelet.resolve("plugins_registry"),
            kubelet.resolve("device-plugins"),
            kubelet.resolve("pod-resources/kubelet.sock"),
            cdi,
            slots,
            resources.stream().map(NodeRole::resource).toList(),
            metricsPort,
            offlineFloor,
            hasGangClaims);
    GpuPoolOptions options =
        GpuPoolOptions.builder()
            .gpuSettings(GpuSettings.builder().offlineFloorPercent(offlineFloor).build())
            .build();
    // Never closed: that would end virtual GPUs whose containers have yet to start.
    @SuppressWarnings("MustBeClosed")
    GpuPool pool = GpuPool.open(options);
    try (KubernetesClient api = new KubernetesClientBuilder().build();
        NodeAgent agent = NodeAgent.open(settings, api, pool, step -> {})) {
      System.out.println("vgpu-k8s: node " + node + ", metrics on port " + agent.metricsPort());
      System.out.flush();
      // Waits for a signal, which ends the process.
      new CountDownLatch(1).await();
    }
    return 0;
  }
}
