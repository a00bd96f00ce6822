package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.node.holding.Step;
import dev.vgpu.k8s.proto.dra.Claim;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.StatusDetails;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/** A node: a directory, an API server, a kubelet, emulated GPUs, and the role. */
public final class TestNode implements AutoCloseable {
  public static final String NAME = "node-1";
  private static final long TIMEOUT_MS = 40_000;
  private static final long LOOK_MS = 20;

  final Path directory;
  final MockApi mock;
  private final String name;

  /** Whether the API server and the GPUs are its own. */
  private final boolean isAlone;

  public final KubernetesClient api;
  public final StrictKubelet kubelet;
  public final GpuPool pool;

  /**
   * All that were opened: a virtual GPU ends when nothing refers to it any more, and those of a
   * closed role are to outlast it as they outlast a dead process.
   */
  private final List<NodeAgent> agents = new ArrayList<>();

  public TestNode() throws IOException {
    this("run");
  }

  private TestNode(String poolsDirectory) throws IOException {
    directory = directory();
    name = NAME;
    isAlone = true;
    mock = new MockApi();
    api = mock.client();
    pool =
        GpuPool.open(
            GpuPoolOptions.builder().runDirectory(directory.resolve(poolsDirectory)).build());
    kubelet = kubelet();
    appear();
  }

  private TestNode(TestNode first, String name) throws IOException {
    directory = directory();
    this.name = name;
    isAlone = false;
    mock = first.mock;
    api = mock.client();
    pool = first.pool;
    kubelet = kubelet();
    appear();
  }

  private static Path directory() throws IOException {
    Path made = Files.createTempDirectory(Path.of("/tmp"), "vgpu-k");
    Files.createDirectories(settings(made).cdiDirectory());
    return made;
  }

  private StrictKubelet kubelet() throws IOException {
    return new StrictKubelet(directory, settings(directory).cdiDirectory());
  }

  /** One whose role is another process with other GPUs than the pool. */
  static TestNode withOtherGpus() throws IOException {
    return new TestNode("own");
  }

  /** Another node of the same cluster, with the same GPUs: one process cannot have others. */
  TestNode another(String anothersName) throws IOException {
    return new TestNode(this, anothersName);
  }

  String name() {
    return name;
  }

  /** The cluster gets the node. */
  final void appear() {
    api.resource(new NodeBuilder().withNewMetadata().withName(name).endMetadata().build()).create();
  }

  /** Where its pool keeps its files. */
  public Path runDirectory() {
    return directory.resolve("run");
  }

  static NodeSettings settings(Path directory) {
    return settings(NAME, directory, List.of());
  }

  private static NodeSettings settings(
      String name, Path directory, List<KubeletResource> resources) {
    return new NodeSettings(
        name,
        directory.resolve("plugins"),
        directory.resolve("plugins_registry"),
        directory.resolve("dp"),
        directory.resolve("pr.sock"),
        directory.resolve("cdi"),
        8,
        resources,
        0,
        0,
        false);
  }

  /** The role, in this process. */
  NodeAgent agent(Step.Listener steps) throws IOException {
    return agent(settings(name, directory, List.of()), steps);
  }

  /** The role, whose node has another name. */
  NodeAgent agent(String name) throws IOException {
    return agent(settings(name, directory, List.of()), step -> {});
  }

  /** The role, whose device plugin offers these resources beside its own. */
  public NodeAgent agent(List<KubeletResource> resources) throws IOException {
    return agent(settings(name, directory, resources), step -> {});
  }

  private NodeAgent agent(NodeSettings settings, Step.Listener steps) throws IOException {
    NodeAgent agent = NodeAgent.open(settings, api, pool, steps);
    agents.add(agent);
    return agent;
  }

  /** The device plugins' side of the kubelet. */
  public StrictDevices devices() throws IOException {
    return new StrictDevices(settings(directory), kubelet.threads());
  }

  NodeAgent agent() throws IOException {
    return agent(step -> {});
  }

  /** The name of a GPU in its slice. */
  public String device(int gpu) {
    return pool.gpus().get(gpu).id().value().toLowerCase(Locale.ROOT);
  }

  /** Creates a claim that has a share of one of its GPUs. */
  Claim create(String claim, int gpu, int share) {
    return create(
        ClaimJson.allocated(claim, device(gpu), share, "1Gi")
            .replace("\"pool\":\"node-1\"", "\"pool\":\"" + name + "\""));
  }

  /** Creates a claim; the API server assigns its UID. */
  public Claim create(String claim) {
    ResourceClaim made = api.resource(Serialization.unmarshal(claim, ResourceClaim.class)).create();
    return Claim.newBuilder()
        .setNamespace(made.getMetadata().getNamespace())
        .setName(made.getMetadata().getName())
        .setUid(made.getMetadata().getUid())
        .build();
  }

  /** A pod on this node with one slot, and what is reserved for it. */
  Pod pod(String name, String reservation) {
    Map<String, Quantity> one = Map.of(Driver.SLOT, new Quantity("1"));
    return api.resource(
            new PodBuilder()
                .withNewMetadata()
                .withNamespace("team")
                .withName(name)
                .withAnnotations(Map.of(Driver.RESERVATION, reservation))
                .endMetadata()
                .withNewSpec()
                .withNodeName(this.name)
                .addNewContainer()
                .withName("main")
                .withNewResources()
                .withLimits(one)
                .endResources()
                .endContainer()
                .endSpec()
                .build())
        .create();
  }

  /** A share of the first GPU, as the scheduler reserves it. */
  String reservation(int share, String memory) {
    return String.format(
        Locale.ROOT,
        "{\"main\":{\"gpu\":\"%s\",\"share\":%d,\"memory\":\"%s\",\"class\":\"online\"}}",
        pool.gpus().get(0).id(),
        share,
        memory);
  }

  /** Deletes a pod, whose containers have ended. */
  public void delete(String pod) {
    List<StatusDetails> ignored = api.pods().inNamespace("team").withName(pod).delete();
  }

  /** Starts a program in a container: with the environment of its CDI device only. */
  public Process program(String cdi, String... command) throws IOException {
    List<String> words = new ArrayList<>(List.of(command));
    words.set(
        0,
        Path.of(
                System.getProperty("vgpu.home"),
                "samples/cuda-programs/target/programs",
                command[0])
            .toString());
    ProcessBuilder builder = new ProcessBuilder(words);
    builder.environment().clear();
    for (JsonNode variable : kubelet.edits(cdi).orElseThrow().path("env")) {
      String[] parts = variable.asText().split("=", 2);
      builder.environment().put(parts[0], parts[1]);
    }
    return builder.redirectError(new File("/dev/null")).start();
  }

  /** The files of one of its directories. */
  List<Path> files(String name) throws IOException {
    Path path = directory.resolve(name);
    if (!Files.exists(path)) {
      return List.of();
    }
    try (Stream<Path> files = Files.list(path)) {
      return files.toList();
    }
  }

  /** Whether one of its directories has no files. */
  boolean isEmpty(String name) {
    try {
      return files(name).isEmpty();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Waits until a condition holds. */
  public static void await(String what, BooleanSupplier condition) throws InterruptedException {
    CountDownLatch never = new CountDownLatch(1);
    for (long waited = 0; !condition.getAsBoolean(); waited += LOOK_MS) {
      assertThat(waited).as(what).isLessThan(TIMEOUT_MS);
      boolean ignored = never.await(LOOK_MS, TimeUnit.MILLISECONDS);
    }
  }

  @Override
  public void close() throws IOException {
    kubelet.close();
    if (isAlone) {
      pool.close();
    }
    api.close();
    if (isAlone) {
      mock.close();
    }
    try (Stream<Path> files = Files.walk(directory)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(file);
      }
    }
  }
}
