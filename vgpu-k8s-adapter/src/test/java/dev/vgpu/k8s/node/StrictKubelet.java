package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.k8s.node.socket.UnixChannel;
import dev.vgpu.k8s.node.socket.UnixServer;
import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.dra.DRAPluginGrpc;
import dev.vgpu.k8s.proto.dra.Device;
import dev.vgpu.k8s.proto.dra.NodePrepareResourceResponse;
import dev.vgpu.k8s.proto.dra.NodePrepareResourcesRequest;
import dev.vgpu.k8s.proto.dra.NodePrepareResourcesResponse;
import dev.vgpu.k8s.proto.dra.NodeUnprepareResourceResponse;
import dev.vgpu.k8s.proto.dra.NodeUnprepareResourcesRequest;
import dev.vgpu.k8s.proto.dra.NodeUnprepareResourcesResponse;
import dev.vgpu.k8s.proto.drahealth.DRAResourceHealthGrpc;
import dev.vgpu.k8s.proto.drahealth.NodeWatchResourcesRequest;
import dev.vgpu.k8s.proto.drahealth.NodeWatchResourcesResponse;
import dev.vgpu.k8s.proto.registration.InfoRequest;
import dev.vgpu.k8s.proto.registration.PluginInfo;
import dev.vgpu.k8s.proto.registration.RegistrationGrpc;
import dev.vgpu.k8s.proto.registration.RegistrationStatus;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Stands in for the kubelet towards DRA drivers: real sockets, its own time limits, and failure on
 * any answer that the real one would reject.
 */
public final class StrictKubelet implements AutoCloseable {
  /** The kubelet's own limit for a call of a DRA driver. */
  private static final long TIMEOUT_SECONDS = 45;

  private static final ObjectMapper JSON = new ObjectMapper();

  private final Path directory;
  private final Path cdi;
  private final UnixServer.Threads threads = UnixServer.Threads.open(4);
  private final Map<String, List<Device>> prepared = new HashMap<>();
  private ManagedChannel plugin;

  StrictKubelet(Path directory, Path cdi) throws IOException {
    this.directory = directory;
    this.cdi = cdi;
    Files.createDirectories(directory.resolve("plugins_registry"));
  }

  UnixServer.Threads threads() {
    return threads;
  }

  /** Finds the only plugin, as the kubelet's watcher does, and registers it. */
  void register() throws IOException {
    disconnect();
    Path socket = onlySocket();
    ManagedChannel channel = UnixChannel.to(socket, threads);
    try {
      RegistrationGrpc.RegistrationBlockingStub stub =
          RegistrationGrpc.newBlockingStub(channel)
              .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS);
      PluginInfo info = stub.getInfo(InfoRequest.getDefaultInstance());
      assertThat(info.getType()).isEqualTo("DRAPlugin");
      assertThat(info.getName()).matches("[a-z0-9]([-a-z0-9.]*[a-z0-9])?").hasSizeLessThan(64);
      assertThat(info.getSupportedVersionsList())
          .containsExactly("v1.DRAPlugin", "v1alpha1.DRAResourceHealth");
      assertThat(Path.of(info.getEndpoint())).isAbsolute().exists();
      stub.notifyRegistrationStatus(
          RegistrationStatus.newBuilder().setPluginRegistered(true).build());
      plugin = UnixChannel.to(Path.of(info.getEndpoint()), threads);
    } finally {
      channel.shutdownNow();
    }
  }

  private Path onlySocket() throws IOException {
    try (Stream<Path> files = Files.list(directory.resolve("plugins_registry"))) {
      List<Path> sockets = files.toList();
      assertThat(sockets).hasSize(1);
      return sockets.get(0);
    }
  }

  /** What the plugin tells of its devices' health, from now on. */
  Iterator<NodeWatchResourcesResponse> health() {
    return DRAResourceHealthGrpc.newBlockingStub(plugin)
        .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS)
        .nodeWatchResources(NodeWatchResourcesRequest.getDefaultInstance());
  }

  private DRAPluginGrpc.DRAPluginBlockingStub plugin() {
    assertThat(plugin).as("registered before it is called").isNotNull();
    return DRAPluginGrpc.newBlockingStub(plugin)
        .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS);
  }

  /** Sends a request and returns the answer unchanged; checks only that it is about this claim. */
  NodePrepareResourceResponse askToPrepare(Claim claim) {
    NodePrepareResourcesResponse answer =
        plugin()
            .nodePrepareResources(
                NodePrepareResourcesRequest.newBuilder().addClaims(claim).build());
    assertThat(answer.getClaimsMap()).containsOnlyKeys(claim.getUid());
    NodePrepareResourceResponse one = answer.getClaimsOrThrow(claim.getUid());
    assertThat(one.getError().isEmpty()).isNotEqualTo(one.getDevicesList().isEmpty());
    return one;
  }

  /** Sends one request for several claims, and returns the answers by UID. */
  Map<String, NodePrepareResourceResponse> askToPrepareAll(List<Claim> claims) {
    NodePrepareResourcesResponse answer =
        plugin()
            .nodePrepareResources(
                NodePrepareResourcesRequest.newBuilder().addAllClaims(claims).build());
    assertThat(answer.getClaimsMap())
        .containsOnlyKeys(claims.stream().map(Claim::getUid).toArray(String[]::new));
    return answer.getClaimsMap();
  }

  /** Sends one request that unprepares several claims. */
  void unprepareAll(List<Claim> claims) {
    NodeUnprepareResourcesResponse answer =
        plugin()
            .nodeUnprepareResources(
                NodeUnprepareResourcesRequest.newBuilder().addAllClaims(claims).build());
    assertThat(answer.getClaimsMap())
        .containsOnlyKeys(claims.stream().map(Claim::getUid).toArray(String[]::new));
    answer.getClaimsMap().values().forEach(one -> assertThat(one.getError()).isEmpty());
    claims.forEach(claim -> prepared.remove(claim.getUid()));
  }

  /** Prepares a claim, and checks what the kubelet and the container runtime rely on. */
  List<Device> prepare(Claim claim) throws IOException {
    NodePrepareResourceResponse answer = askToPrepare(claim);
    assertThat(answer.getError()).isEmpty();
    List<Device> devices = answer.getDevicesList();
    Map<String, List<String>> added = new HashMap<>();
    for (Device device : devices) {
      assertThat(device.getPoolName()).isNotEmpty();
      assertThat(device.getDeviceName()).matches("[a-z0-9]([-a-z0-9]*[a-z0-9])?");
      assertThat(device.getRequestNamesList()).isNotEmpty();
      for (String request : device.getRequestNamesList()) {
        added
            .computeIfAbsent(request, name -> new ArrayList<>())
            .addAll(device.getCdiDeviceIdsList());
      }
      device.getCdiDeviceIdsList().forEach(id -> assertThat(edits(id)).as(id).isPresent());
    }
    // A container gets the CDI devices of all devices of its request; the runtime adds each.
    added.forEach(
        (request, ids) -> assertThat(ids).as(request).isNotEmpty().doesNotHaveDuplicates());
    List<Device> before = prepared.put(claim.getUid(), devices);
    if (before != null) {
      assertThat(devices).as("prepared twice, answered alike").isEqualTo(before);
    }
    return devices;
  }

  /** Unprepares a claim; the kubelet repeats this until it gets no error. */
  void unprepare(Claim claim) {
    NodeUnprepareResourcesResponse answer =
        plugin()
            .nodeUnprepareResources(
                NodeUnprepareResourcesRequest.newBuilder().addClaims(claim).build());
    assertThat(answer.getClaimsMap()).containsOnlyKeys(claim.getUid());
    NodeUnprepareResourceResponse one = answer.getClaimsOrThrow(claim.getUid());
    assertThat(one.getError()).isEmpty();
    List<Device> before = prepared.remove(claim.getUid());
    if (before != null) {
      before.forEach(
          device ->
              device.getCdiDeviceIdsList().forEach(id -> assertThat(edits(id)).as(id).isEmpty()));
    }
  }

  /** What a container runtime adds for a CDI device. */
  public Optional<JsonNode> edits(String id) {
    String kind = id.substring(0, id.indexOf('='));
    String name = id.substring(id.indexOf('=') + 1);
    try (Stream<Path> files = Files.list(cdi)) {
      JsonNode found = null;
      for (Path file : files.filter(path -> path.toString().endsWith(".json")).toList()) {
        JsonNode content = read(file);
        for (JsonNode device : content.path("devices")) {
          if (content.path("kind").asText().equals(kind)
              && device.path("name").asText().equals(name)) {
            assertThat(found).as("a CDI device is described once: %s", id).isNull();
            found = device.path("containerEdits");
          }
        }
      }
      return Optional.ofNullable(found);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** A file may be removed between being listed and being read. */
  private static JsonNode read(Path file) throws IOException {
    try {
      return JSON.readTree(Files.readAllBytes(file));
    } catch (NoSuchFileException e) {
      return JSON.createObjectNode();
    }
  }

  /** The value of a variable in the container's environment. */
  String variable(String id, String name) {
    for (JsonNode each : edits(id).orElseThrow().path("env")) {
      if (each.asText().startsWith(name + "=")) {
        return each.asText().substring(name.length() + 1);
      }
    }
    throw new AssertionError("no variable " + name + " in " + edits(id));
  }

  private void disconnect() {
    if (plugin != null) {
      plugin.shutdownNow();
      plugin = null;
    }
  }

  @Override
  public void close() {
    disconnect();
    threads.close();
  }
}
