package dev.vgpu.k8s.node.slot;

import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.node.health.Condition;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.node.holding.Holding.Part;
import dev.vgpu.k8s.node.holding.Holding.PoolDevice;
import dev.vgpu.k8s.node.holding.Holding.Stage;
import dev.vgpu.k8s.node.holding.Holdings;
import dev.vgpu.k8s.node.holding.Terms;
import dev.vgpu.k8s.proto.deviceplugin.AllocateRequest;
import dev.vgpu.k8s.proto.deviceplugin.AllocateResponse;
import dev.vgpu.k8s.proto.deviceplugin.CDIDevice;
import dev.vgpu.k8s.proto.deviceplugin.ContainerAllocateRequest;
import dev.vgpu.k8s.proto.deviceplugin.ContainerAllocateResponse;
import dev.vgpu.k8s.proto.deviceplugin.DevicePluginGrpc;
import dev.vgpu.k8s.proto.deviceplugin.DevicePluginOptions;
import dev.vgpu.k8s.proto.deviceplugin.Empty;
import dev.vgpu.k8s.proto.deviceplugin.ListAndWatchResponse;
import dev.vgpu.k8s.proto.deviceplugin.PreStartContainerRequest;
import dev.vgpu.k8s.proto.deviceplugin.PreStartContainerResponse;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.PhysicalGpu;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodStatus;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The calls that the kubelet makes to the device plugin. Safe for use by several threads.
 *
 * <p>{@code Allocate} does not say which pod it is for, so it only names the slot's CDI device;
 * nothing is taken. When {@code PreStartContainer} is called, the kubelet's pod resources name the
 * one container that has the slot; the virtual GPU is taken then. If they name none or two, the
 * container is refused.
 */
final class SlotPlugin extends DevicePluginGrpc.DevicePluginImplBase {
  private static final Logger log = LoggerFactory.getLogger(SlotPlugin.class);

  private final KubernetesClient api;
  private final GpuPool pool;
  private final GpuConditions conditions;
  private final Holdings holdings;
  private final SlotOwners owners;
  private final String node;
  private final List<KubeletResource> offered;
  private final KubeletResource resource;
  private final int count;

  private final SlotList slots;

  /** What was known when the health was told last. Confined to the thread that tells it. */
  private long toldChanges = -1;

  private List<Holding> toldHoldings = List.of();

  /** Slots without an owner at the last look. Confined to the timer's thread. */
  private Set<String> idle = Set.of();

  SlotPlugin(SlotDriver.Parts parts, KubeletResource resource) {
    this.api = parts.api();
    this.pool = parts.pool();
    this.conditions = parts.conditions();
    this.holdings = parts.holdings();
    this.owners = parts.owners();
    this.node = parts.node();
    this.offered = parts.offered();
    this.resource = resource;
    this.count =
        resource.devices(
            parts.slots(), pool.gpus().stream().map(PhysicalGpu::usableMemory).toList());
    this.slots = new SlotList(resource, count);
  }

  @Override
  public void getDevicePluginOptions(Empty request, StreamObserver<DevicePluginOptions> answers) {
    answers.onNext(options());
    answers.onCompleted();
  }

  static DevicePluginOptions options() {
    return DevicePluginOptions.newBuilder().setPreStartRequired(true).build();
  }

  @Override
  public void listAndWatch(Empty request, StreamObserver<ListAndWatchResponse> answers) {
    slots.watch((ServerCallStreamObserver<ListAndWatchResponse>) answers);
  }

  /** Tells the kubelet the health of the slots, if it has changed. */
  void tell() {
    long changes = conditions.changes();
    List<Holding> all = holdings.all();
    if (changes == toldChanges && all.equals(toldHoldings)) {
      return;
    }
    Map<GpuId, Condition> now = conditions.now();
    boolean isServed =
        pool.gpus().stream()
            .filter(gpu -> gpu.unusableAsWhole().isEmpty())
            .anyMatch(gpu -> now.getOrDefault(gpu.id(), Condition.GOOD).isUsable());
    if (slots.tell(isServed, all, now)) {
      toldChanges = changes;
      toldHoldings = all;
    }
  }

  /** Ends the streams, for which the server would wait otherwise. */
  void end() {
    slots.end();
  }

  @Override
  public void allocate(AllocateRequest request, StreamObserver<AllocateResponse> answers) {
    AllocateResponse.Builder answer = AllocateResponse.newBuilder();
    answer(
        answers,
        () -> {
          for (ContainerAllocateRequest container : request.getContainerRequestsList()) {
            if (!gives(container.getDevicesIdsList())) {
              answer.addContainerResponses(ContainerAllocateResponse.getDefaultInstance());
              continue;
            }
            String slot = slot(container.getDevicesIdsList());
            for (String id : container.getDevicesIdsList()) {
              holdings.giveBack(id); // of an earlier container: the kubelet considers it free
            }
            answer
                .addContainerResponsesBuilder()
                .addCdiDevices(CDIDevice.newBuilder().setName(Holdings.cdiName(slot)));
          }
          return answer.build();
        });
  }

  @Override
  public void preStartContainer(
      PreStartContainerRequest request, StreamObserver<PreStartContainerResponse> answers) {
    answer(
        answers,
        () -> {
          if (gives(request.getDevicesIdsList())) {
            take(slot(request.getDevicesIdsList()));
          }
          return PreStartContainerResponse.getDefaultInstance();
        });
  }

  /** {@return whether a container gets its virtual GPU by these devices, not by other ones} */
  private boolean gives(List<String> ids) {
    return resource.gives(BigDecimal.valueOf(ids.size()));
  }

  private void take(String slot) throws IOException {
    List<SlotOwners.Owner> found =
        owners.owners(resource.resource()).stream()
            .filter(owner -> owner.slot().equals(slot))
            .toList();
    if (found.size() != 1) {
      throw new IllegalArgumentException(
          "it is not clear which container has the slot: slot=" + slot + " owners=" + found);
    }
    SlotOwners.Owner owner = found.get(0);
    Optional<Holding> present = holdings.all().stream().filter(one -> isOf(one, owner)).findAny();
    if (present.isPresent()) {
      // The container restarts, which it may while the API server is away. Another pod of that
      // name would have been allocated the slot before, and that gives back what was held.
      Holding ignored = holdings.take(present.get());
      return;
    }
    Pod pod = api.pods().inNamespace(owner.namespace()).withName(owner.pod()).get();
    if (pod == null || !node.equals(pod.getSpec().getNodeName())) {
      throw new IllegalArgumentException(
          "the API server has no such pod on this node: " + owner.namespace() + "/" + owner.pod());
    }
    Holding ignored =
        holdings.take(
            new Holding(
                slot,
                Stage.TAKING,
                new Holding.Owner(
                    owner.namespace(),
                    owner.pod(),
                    Optional.of(pod.getMetadata().getUid()),
                    Optional.of(owner.container())),
                List.of(
                    part(slot, Reservations.of(pod, owner.container(), offered, this::usable)))));
  }

  private static boolean isOf(Holding holding, SlotOwners.Owner owner) {
    return holding.key().equals(owner.slot())
        && holding.stage() == Stage.TAKEN
        && holding.owner().namespace().equals(owner.namespace())
        && holding.owner().name().equals(owner.pod())
        && holding.owner().container().equals(Optional.of(owner.container()));
  }

  private MemorySize usable(GpuId id) {
    return pool.gpus().stream()
        .filter(gpu -> gpu.id().equals(id))
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException("this node has no such GPU: gpu=" + id))
        .usableMemory();
  }

  private static Part part(String slot, Terms terms) {
    return new Part(
        slot, slot, List.of(new PoolDevice(slot, Optional.empty())), terms, Optional.empty());
  }

  /**
   * {@return the slot of a container: its device with the lowest number} The kubelet gives a device
   * to one container only, and names the same devices whenever the container starts.
   */
  private String slot(List<String> ids) {
    if (ids.isEmpty()) {
      throw new IllegalArgumentException("it asks for no " + resource.resource());
    }
    return resource.prefix() + ids.stream().mapToInt(this::number).min().orElseThrow();
  }

  private int number(String id) {
    return IntStream.range(0, count)
        .filter(number -> id.equals(resource.prefix() + number))
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException("no such slot: " + id));
  }

  /**
   * Gives back slots whose containers have ended: at two consecutive looks, the kubelet lists no
   * owner, and the API server confirms it. Call it periodically.
   *
   * @throws IOException if a file cannot be removed
   */
  void reconcile() throws IOException {
    Map<String, Holding> held =
        holdings.all().stream()
            .filter(holding -> resource.owns(holding.key()))
            .collect(Collectors.toMap(Holding::key, holding -> holding));
    if (held.isEmpty()) {
      idle = Set.of();
      return;
    }
    owners.owners(resource.resource()).forEach(owner -> held.remove(owner.slot()));
    Set<String> before = idle;
    idle = Set.copyOf(held.keySet());
    for (Holding holding : held.values()) {
      if (before.contains(holding.key())
          && (holding.stage() == Stage.RETURNING || hasEnded(holding.owner()))) {
        holdings.giveBack(holding.key(), holding.owner()); // the slot may be another's by now
      }
    }
  }

  /**
   * {@return whether a container has ended, according to the API server} The kubelet's list alone
   * does not say so: from the kubelet's start until the API server has told it its pods, the list
   * is empty. A pod of another node is one of the time before this node got its name.
   */
  private boolean hasEnded(Holding.Owner owner) {
    Pod pod = api.pods().inNamespace(owner.namespace()).withName(owner.name()).get();
    if (pod == null
        || !owner.podUid().equals(Optional.of(pod.getMetadata().getUid()))
        || !node.equals(pod.getSpec().getNodeName())) {
      return true;
    }
    PodStatus status = pod.getStatus();
    if (status == null) {
      return false;
    }
    return "Succeeded".equals(status.getPhase())
        || "Failed".equals(status.getPhase())
        || Stream.of(status.getContainerStatuses(), status.getInitContainerStatuses())
            .filter(Objects::nonNull)
            .flatMap(List::stream)
            .anyMatch(
                one ->
                    owner.container().equals(Optional.of(one.getName()))
                        && one.getState() != null
                        && one.getState().getTerminated() != null);
  }

  private interface Work<T> {
    T answer() throws IOException;
  }

  private static <T> void answer(StreamObserver<T> answers, Work<T> work) {
    try {
      answers.onNext(work.answer());
      answers.onCompleted();
    } catch (StatusRuntimeException
        | KubernetesClientException
        | VgpuException
        | IllegalArgumentException
        | IllegalStateException
        | IOException e) {
      log.warn("a container is not served", e);
      answers.onError(
          Status.FAILED_PRECONDITION.withDescription("vgpu: " + e.getMessage()).asException());
    }
  }
}
