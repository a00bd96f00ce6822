package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.node.socket.UnixChannel;
import dev.vgpu.k8s.node.socket.UnixServer;
import dev.vgpu.k8s.proto.deviceplugin.AllocateRequest;
import dev.vgpu.k8s.proto.deviceplugin.AllocateResponse;
import dev.vgpu.k8s.proto.deviceplugin.ContainerAllocateRequest;
import dev.vgpu.k8s.proto.deviceplugin.Device;
import dev.vgpu.k8s.proto.deviceplugin.DevicePluginGrpc;
import dev.vgpu.k8s.proto.deviceplugin.Empty;
import dev.vgpu.k8s.proto.deviceplugin.ListAndWatchResponse;
import dev.vgpu.k8s.proto.deviceplugin.PreStartContainerRequest;
import dev.vgpu.k8s.proto.deviceplugin.RegisterRequest;
import dev.vgpu.k8s.proto.deviceplugin.RegistrationGrpc;
import dev.vgpu.k8s.proto.podresources.ContainerDevices;
import dev.vgpu.k8s.proto.podresources.ContainerResources;
import dev.vgpu.k8s.proto.podresources.ListPodResourcesRequest;
import dev.vgpu.k8s.proto.podresources.ListPodResourcesResponse;
import dev.vgpu.k8s.proto.podresources.PodResources;
import dev.vgpu.k8s.proto.podresources.PodResourcesListerGrpc;
import io.grpc.ManagedChannel;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/**
 * Stands in for the kubelet towards device plugins: it accepts registrations, lists pods'
 * resources, and allocates a free device before it lets a container start.
 */
final class StrictDevices implements AutoCloseable {
  /** The kubelet's limits for its calls. */
  private static final long PRE_START_SECONDS = 30;

  private static final int MOST_BYTES = 4 << 20;

  private final Path directory;
  private final UnixServer.Threads threads;
  private final UnixServer podResources;
  private final Map<String, PodResources> pods = new ConcurrentHashMap<>();
  private final Set<String> allocated = new HashSet<>();
  final AtomicInteger registrations = new AtomicInteger();
  private volatile RegisterRequest registered;
  private UnixServer registration;
  private ManagedChannel plugin;

  StrictDevices(NodeSettings settings, UnixServer.Threads threads) throws IOException {
    this.directory = settings.devicePluginDirectory();
    this.threads = threads;
    podResources = UnixServer.open(settings.podResources(), threads, new Lister());
    start();
  }

  private void start() throws IOException {
    registration = UnixServer.open(directory.resolve("kubelet.sock"), threads, new Register());
  }

  /** Removes all sockets of plugins, as the kubelet does when it starts. */
  void restart() throws IOException {
    registration.close();
    try (Stream<Path> files = Files.list(directory)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
    }
    start();
  }

  private final class Register extends RegistrationGrpc.RegistrationImplBase {
    @Override
    public void register(RegisterRequest request, StreamObserver<Empty> answers) {
      registered = request;
      answers.onNext(Empty.getDefaultInstance());
      answers.onCompleted();
      registrations.incrementAndGet();
    }
  }

  private final class Lister extends PodResourcesListerGrpc.PodResourcesListerImplBase {
    @Override
    public void list(
        ListPodResourcesRequest request, StreamObserver<ListPodResourcesResponse> answers) {
      answers.onNext(
          ListPodResourcesResponse.newBuilder().addAllPodResources(pods.values()).build());
      answers.onCompleted();
    }
  }

  /** Connects to the registered plugin, and returns the devices that it lists. */
  List<Device> connect() {
    assertThat(registered.getVersion()).isEqualTo("v1beta1");
    assertThat(registered.getResourceName()).isEqualTo("vgpu.dev/slot");
    assertThat(registered.getEndpoint()).doesNotContain("/");
    if (plugin != null) {
      plugin.shutdownNow();
    }
    plugin = UnixChannel.to(directory.resolve(registered.getEndpoint()), threads);
    ListAndWatchResponse listed =
        DevicePluginGrpc.newBlockingStub(plugin)
            .withDeadlineAfter(PRE_START_SECONDS, TimeUnit.SECONDS)
            .listAndWatch(Empty.getDefaultInstance())
            .next();
    assertThat(listed.getSerializedSize()).isLessThan(MOST_BYTES);
    assertThat(listed.getDevicesList()).doesNotHaveDuplicates();
    return listed.getDevicesList();
  }

  private DevicePluginGrpc.DevicePluginBlockingStub plugin() {
    return DevicePluginGrpc.newBlockingStub(plugin)
        .withDeadlineAfter(PRE_START_SECONDS, TimeUnit.SECONDS);
  }

  /** Admits a container: allocates a free device and lists it. Returns the CDI device. */
  String admit(String pod, String container, String device) {
    assertThat(allocated.add(device)).as("%s is free", device).isTrue();
    AllocateResponse answer =
        plugin()
            .allocate(
                AllocateRequest.newBuilder()
                    .addContainerRequests(
                        ContainerAllocateRequest.newBuilder().addDevicesIds(device))
                    .build());
    assertThat(answer.getContainerResponsesList()).hasSize(1);
    assertThat(answer.getContainerResponses(0).getCdiDevicesList()).hasSize(1);
    list(pod, container, device);
    return answer.getContainerResponses(0).getCdiDevices(0).getName();
  }

  void list(String pod, String container, String device) {
    pods.put(
        pod,
        PodResources.newBuilder()
            .setNamespace("team")
            .setName(pod)
            .addContainers(
                ContainerResources.newBuilder()
                    .setName(container)
                    .addDevices(
                        ContainerDevices.newBuilder()
                            .setResourceName("vgpu.dev/slot")
                            .addDeviceIds(device)))
            .build());
  }

  /** The call before each start of a container. */
  void preStart(String device) {
    assertThat(allocated).contains(device);
    plugin().preStartContainer(PreStartContainerRequest.newBuilder().addDevicesIds(device).build());
  }

  void ended(String pod, String device) {
    pods.remove(pod);
    allocated.remove(device);
  }

  @Override
  public void close() {
    if (plugin != null) {
      plugin.shutdownNow();
    }
    registration.close();
    podResources.close();
  }
}
