package dev.vgpu.spring;

import dev.vgpu.GpuPool;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.GpuUsage;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;

/**
 * The actuator endpoint {@code vgpu}: the leases on the GPUs of this node, how the GPUs are shared,
 * and the latest events. {@code vgpu/MODEL} explains the choice of backend for a model of this
 * service.
 */
@Endpoint(id = "vgpu")
public final class VgpuEndpoint {
  private final GpuPool pool;
  private final VgpuProperties properties;

  VgpuEndpoint(GpuPool pool, VgpuProperties properties) {
    this.pool = pool;
    this.properties = properties;
  }

  /**
   * The endpoint's answer.
   *
   * @param gpus how each GPU is shared
   * @param leases the leases
   * @param events the latest events, the oldest first
   */
  public record Overview(List<Gpu> gpus, List<Lease> leases, List<Event> events) {}

  /**
   * How one GPU is shared.
   *
   * @param gpu its UUID
   * @param mode how its tenants share it
   * @param reason why they share it so
   * @param health whether it answers
   * @param healthReason why it is not healthy; empty if it is
   * @param holder the virtual GPU that has the turn, if one has
   * @param heldBack the virtual GPUs that have work and are at their fixed share
   * @param suspended the virtual GPUs whose memory was moved to the host
   * @param memoryFreeBytes the free part of the memory that quotas may take
   */
  public record Gpu(
      String gpu,
      String mode,
      String reason,
      String health,
      String healthReason,
      @Nullable String holder,
      List<String> heldBack,
      List<String> suspended,
      long memoryFreeBytes) {
    static Gpu of(GpuState state) {
      return new Gpu(
          state.gpu().value(),
          lower(state.mode()),
          state.reason(),
          lower(state.health()),
          state.healthReason(),
          state.holder().orElse(null),
          state.heldBack(),
          state.suspended(),
          state.memoryFree().bytes());
    }
  }

  /**
   * One lease.
   *
   * @param id its name, unique on the node
   * @param name the requested name
   * @param gpus the UUIDs of its GPUs
   * @param pid the process that holds it
   * @param policy how its share is enforced
   * @param preemptionClass which tenants yield to which
   * @param entitledPercent its part of the GPU's time when all tenants of its class have work
   * @param quotaBytes the memory that it may hold
   * @param memoryUsedBytes the memory that its processes hold
   * @param memoryReservedBytes the part of the quota taken by running calls and reservations
   * @param gpuTimeSeconds how long its work ran on the GPU
   * @param calls how many calls it has started
   * @param running how many calls run
   * @param waiting how many calls wait
   * @param preemptions how many calls were cancelled, and turns lost, for more urgent tenants
   * @param deniedAllocations how many allocations were refused because of the quota
   * @param impaired what is not enforced now and why, if anything
   */
  public record Lease(
      String id,
      String name,
      List<String> gpus,
      long pid,
      String policy,
      String preemptionClass,
      double entitledPercent,
      long quotaBytes,
      long memoryUsedBytes,
      long memoryReservedBytes,
      double gpuTimeSeconds,
      long calls,
      int running,
      int waiting,
      long preemptions,
      long deniedAllocations,
      @Nullable String impaired) {
    static Lease of(GpuLease lease) {
      GpuUsage usage = lease.usage();
      return new Lease(
          lease.id(),
          lease.request().name(),
          lease.gpus().stream().map(gpu -> gpu.value()).toList(),
          lease.pid(),
          lower(lease.request().policy()),
          lower(lease.request().preemptionClass()),
          lease.entitledPercent(),
          lease.request().memory().bytes(),
          usage.memoryUsed().bytes(),
          usage.memoryReserved().bytes(),
          usage.gpuTime().toNanos() * 1e-9,
          usage.calls(),
          usage.running(),
          usage.waiting(),
          usage.preemptions(),
          usage.deniedAllocations(),
          lease.impaired().orElse(null));
    }
  }

  /**
   * An event.
   *
   * @param at the time, in ISO 8601
   * @param kind the kind of event
   * @param virtualGpu the virtual GPU that it is about; empty for a whole GPU
   * @param text a description with all details
   */
  public record Event(String at, String kind, String virtualGpu, String text) {
    static Event of(GpuEvent event) {
      return new Event(
          event.at().toString(),
          event.getClass().getSimpleName(),
          event.virtualGpu(),
          event.toString());
    }
  }

  /**
   * The pool's verdict on one backend on one GPU.
   *
   * @param gpu its UUID
   * @param backend its name
   * @param verdict whether it would serve the model
   * @param reason why
   */
  public record Choice(String gpu, String backend, String verdict, String reason) {
    static Choice of(BackendChoice choice) {
      return new Choice(
          choice.gpu().value(), choice.backend(), lower(choice.verdict()), choice.reason());
    }
  }

  /** {@return the leases, how the GPUs are shared, and the latest events} */
  @ReadOperation
  public Overview overview() {
    return new Overview(
        pool.states().stream().map(Gpu::of).toList(),
        pool.leases().stream().map(Lease::of).toList(),
        pool.recentEvents().stream().map(Event::of).toList());
  }

  /**
   * {@return the verdict on each backend if the model were requested now; empty if there is no such
   * model}
   *
   * @param model its name below {@code vgpu.models}
   */
  @ReadOperation
  public @Nullable Map<String, List<Choice>> explain(@Selector String model) {
    VgpuProperties.Model asked = properties.models().get(model);
    if (asked == null) {
      return null; // answered with 404
    }
    Map<String, List<Choice>> choices = new TreeMap<>();
    choices.put(
        "choices", pool.explain(ModelGpus.request(model, asked)).stream().map(Choice::of).toList());
    return choices;
  }

  private static String lower(Enum<?> value) {
    return value.name().toLowerCase(Locale.ROOT);
  }
}
