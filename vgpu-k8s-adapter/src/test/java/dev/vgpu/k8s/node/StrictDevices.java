package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.node.socket.UnixChannel;
import dev.vgpu.k8s.node.socket.UnixServer;
import dev.vgpu.k8s.proto.deviceplugin.AllocateRequest;
import dev.vgpu.k8s.proto.deviceplugin.AllocateResponse;
import dev.vgpu.k8s.proto.deviceplugin.CDIDevice;
import dev.vgpu.k8s.proto.deviceplugin.ContainerAllocateRequest;
import dev.vgpu.k8s.proto.deviceplugin.Device;
import dev.vgpu.k8s.proto.deviceplugin.DevicePluginGrpc;
import dev.vgpu.k8s.proto.deviceplugin.Empty;
import dev.vgpu.k8s.proto.deviceplugin.ListAndWatchResponse;
import dev.vgpu.k8s.proto.deviceplugin.PreStartContainerRequest;
import dev.vgpu.k8s.proto.deviceplugin.RegisterRequest;
import dev.vgpu.k8s.proto.deviceplugin.RegistrationGrpc;
import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.podresources.ContainerDevices;
import dev.vgpu.k8s.proto.podresources.ContainerResources;
import dev.vgpu.k8s.proto.podresources.DynamicResource;
import dev.vgpu.k8s.proto.podresources.ListPodResourcesRequest;
import dev.vgpu.k8s.proto.podresources.ListPodResourcesResponse;
import dev.vgpu.k8s.proto.podresources.PodResources;
import dev.vgpu.k8s.proto.podresources.PodResourcesListerGrpc;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/**
 * Stands in for the kubelet towards device plugins: it accepts registrations, lists pods'
 * resources, and allocates a free device before it lets a container start.
 */
public final class StrictDevices implements AutoCloseable {
  /** The kubelet's limits for its calls. */
  private static final long PRE_START_SECONDS = 30;

  private static final int MOST_BYTES = 4 << 20;
  private static final String SLOT = "vgpu.dev/slot";

  private final Path directory;
  private final UnixServer.Threads threads;
  private final NodeSettings settings;

  /** How often pods' resources were listed. */
  final AtomicInteger lists = new AtomicInteger();

  /** Whether it refuses to list pods' resources. */
  volatile boolean isTooBusy;

  /** Whether it has started, and has not yet learned of its pods. */
  private volatile boolean knowsNoPods;

  private UnixServer podResources;
  private final Map<String, PodResources> pods = new ConcurrentHashMap<>();
  private final Set<String> allocated = new HashSet<>();
  public final AtomicInteger registrations = new AtomicInteger();

  /** By resource. */
  private final Map<String, RegisterRequest> registered = new ConcurrentHashMap<>();

  private final Map<String, ManagedChannel> plugins = new HashMap<>();

  /** By resource. */
  private final Map<String, List<Device>> listed = new ConcurrentHashMap<>();

  private UnixServer registration;

  StrictDevices(NodeSettings settings, UnixServer.Threads threads) throws IOException {
    this.directory = settings.devicePluginDirectory();
    this.threads = threads;
    this.settings = settings;
    start();
  }

  private void start() throws IOException {
    podResources = UnixServer.open(settings.podResources(), threads, new Lister());
    registration = UnixServer.open(directory.resolve("kubelet.sock"), threads, new Register());
  }

  /**
   * Ends and starts again. It removes all sockets of plugins then, and keeps what is allocated.
   * Until it has asked the API server, it lists no pods.
   */
  void restart() throws IOException {
    knowsNoPods = true;
    registration.close();
    podResources.close();
    try (Stream<Path> files = Files.list(directory)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
    }
    start();
  }

  /** The API server has told it its pods. */
  void learnsItsPods() {
    knowsNoPods = false;
  }

  private final class Register extends RegistrationGrpc.RegistrationImplBase {
    @Override
    public void register(RegisterRequest request, StreamObserver<Empty> answers) {
      registered.put(request.getResourceName(), request);
      answers.onNext(Empty.getDefaultInstance());
      answers.onCompleted();
      registrations.incrementAndGet();
    }
  }

  private final class Lister extends PodResourcesListerGrpc.PodResourcesListerImplBase {
    @Override
    public void list(
        ListPodResourcesRequest request, StreamObserver<ListPodResourcesResponse> answers) {
      lists.incrementAndGet();
      if (isTooBusy) {
        answers.onError(Status.RESOURCE_EXHAUSTED.asRuntimeException());
        return;
      }
      answers.onNext(
          ListPodResourcesResponse.newBuilder()
              .addAllPodResources(knowsNoPods ? List.of() : pods.values())
              .build());
      answers.onCompleted();
    }
  }

  List<Device> connect() {
    return connect(SLOT);
  }

  /** Connects to the registered plugin of a resource, and returns the devices that it lists. */
  public List<Device> connect(String resource) {
    RegisterRequest request = registered.get(resource);
    assertThat(request).as(resource).isNotNull();
    assertThat(request.getVersion()).isEqualTo("v1beta1");
    assertThat(request.getEndpoint()).doesNotContain("/");
    ManagedChannel plugin = UnixChannel.to(directory.resolve(request.getEndpoint()), threads);
    ManagedChannel before = plugins.put(resource, plugin);
    if (before != null) {
      before.shutdownNow();
    }
    CountDownLatch first = new CountDownLatch(1);
    listed.remove(resource);
    DevicePluginGrpc.newStub(plugin)
        .listAndWatch(Empty.getDefaultInstance(), new Watch(resource, first));
    try {
      if (!first.await(PRE_START_SECONDS, TimeUnit.SECONDS) || listed(resource).isEmpty()) {
        throw Status.UNAVAILABLE.withDescription("it lists no devices").asRuntimeException();
      }
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
    assertThat(listed(resource)).doesNotHaveDuplicates();
    return listed(resource);
  }

  /** The devices of a resource, as they were listed last. */
  List<Device> listed(String resource) {
    return listed.getOrDefault(resource, List.of());
  }

  /** The stream of a resource's devices, which the kubelet reads until it ends. */
  private final class Watch implements StreamObserver<ListAndWatchResponse> {
    private final String resource;
    private final CountDownLatch first;

    Watch(String resource, CountDownLatch first) {
      this.resource = resource;
      this.first = first;
    }

    @Override
    public void onNext(ListAndWatchResponse answer) {
      assertThat(answer.getSerializedSize()).isLessThan(MOST_BYTES);
      listed.put(resource, answer.getDevicesList());
      first.countDown();
    }

    @Override
    public void onError(Throwable failure) {
      first.countDown();
    }

    @Override
    public void onCompleted() {
      first.countDown();
    }
  }

  private DevicePluginGrpc.DevicePluginBlockingStub plugin(String resource) {
    return DevicePluginGrpc.newBlockingStub(plugins.get(resource))
        .withDeadlineAfter(PRE_START_SECONDS, TimeUnit.SECONDS);
  }

  String admit(String pod, String container, String device) {
    return admit(pod, container, SLOT, List.of(device));
  }

  /** Admits a container: allocates free devices and lists them. Returns the CDI device. */
  public String admit(String pod, String container, String resource, List<String> devices) {
    List<String> names = allocate(pod, container, resource, devices);
    assertThat(names).hasSize(1);
    return names.get(0);
  }

  /** Allocates free devices to a container and lists them. Returns the CDI devices. */
  public List<String> allocate(
      String pod, String container, String resource, List<String> devices) {
    devices.forEach(device -> assertThat(allocated.add(device)).as("%s is free", device).isTrue());
    AllocateResponse answer =
        plugin(resource)
            .allocate(
                AllocateRequest.newBuilder()
                    .addContainerRequests(
                        ContainerAllocateRequest.newBuilder().addAllDevicesIds(devices))
                    .build());
    assertThat(answer.getContainerResponsesList()).hasSize(1);
    list(pod, container, resource, devices);
    return answer.getContainerResponses(0).getCdiDevicesList().stream()
        .map(CDIDevice::getName)
        .toList();
  }

  void list(String pod, String container, String device) {
    list(pod, container, SLOT, List.of(device));
  }

  private void list(String pod, String container, String resource, List<String> devices) {
    ContainerDevices of =
        ContainerDevices.newBuilder().setResourceName(resource).addAllDeviceIds(devices).build();
    PodResources known = pods.get(pod);
    boolean hasAnother =
        known != null
            && known.getContainersList().stream()
                .anyMatch(one -> !one.getDevices(0).getResourceName().equals(resource));
    ContainerResources.Builder resources =
        hasAnother
            ? known.getContainers(0).toBuilder()
            : ContainerResources.newBuilder().setName(container);
    pods.put(
        pod,
        PodResources.newBuilder()
            .setNamespace("team")
            .setName(pod)
            .addContainers(resources.addDevices(of))
            .build());
  }

  /** Lists a container that has a claim and no device of a plugin. */
  void listClaim(
      String pod, String container, Claim claim, List<dev.vgpu.k8s.proto.dra.Device> devices) {
    DynamicResource.Builder resource =
        DynamicResource.newBuilder()
            .setClaimName(claim.getName())
            .setClaimNamespace(claim.getNamespace());
    for (dev.vgpu.k8s.proto.dra.Device device : devices) {
      resource
          .addClaimResourcesBuilder()
          .setDriverName(Driver.NAME)
          .setPoolName(device.getPoolName())
          .setDeviceName(device.getDeviceName())
          .addAllCdiDevices(
              device.getCdiDeviceIdsList().stream()
                  .map(
                      id ->
                          dev.vgpu.k8s.proto.podresources.CDIDevice.newBuilder()
                              .setName(id)
                              .build())
                  .toList());
    }
    pods.put(
        pod,
        PodResources.newBuilder()
            .setNamespace("team")
            .setName(pod)
            .addContainers(ContainerResources.newBuilder().setName("side"))
            .addContainers(
                ContainerResources.newBuilder().setName(container).addDynamicResources(resource))
            .build());
  }

  void preStart(String device) {
    preStart(SLOT, List.of(device));
  }

  /** The call before each start of a container. */
  public void preStart(String resource, List<String> devices) {
    assertThat(allocated).containsAll(devices);
    plugin(resource)
        .preStartContainer(PreStartContainerRequest.newBuilder().addAllDevicesIds(devices).build());
  }

  void ended(String pod, String device) {
    ended(pod, List.of(device));
  }

  public void ended(String pod, List<String> devices) {
    pods.remove(pod);
    devices.forEach(allocated::remove);
  }

  @Override
  public void close() {
    plugins.values().forEach(ManagedChannel::shutdownNow);
    registration.close();
    podResources.close();
  }
}
