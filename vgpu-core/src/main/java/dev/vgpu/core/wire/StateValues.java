package dev.vgpu.core.wire;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.SharingMode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Encodes and decodes how GPUs are shared. */
public final class StateValues {
  private static final String COUNT = "state.count";
  private static final int MOST_GPUS = 10_000;
  private static final int MOST_NAMED = 1_000;

  private StateValues() {}

  /**
   * How one GPU is shared.
   *
   * @param gpu the GPU
   * @param mode how its tenants share it
   * @param reason why
   * @param holder the tenant that has the turn
   * @param heldBack the tenants that have work and are at their fixed share
   * @param turnLength the length of a turn
   * @param switches the number of turns so far
   * @param memoryFree the memory that is free
   * @param memoryLowWatermark reclaim starts below this
   * @param memoryHighWatermark reclaim stops at this
   * @param suspended tenants whose processes are suspended
   * @param health the GPU's health
   * @param healthReason why it is not healthy
   */
  public record State(
      GpuId gpu,
      SharingMode mode,
      String reason,
      Optional<String> holder,
      List<String> heldBack,
      Duration turnLength,
      long switches,
      MemorySize memoryFree,
      MemorySize memoryLowWatermark,
      MemorySize memoryHighWatermark,
      List<String> suspended,
      GpuHealth health,
      String healthReason)
      implements GpuState {}

  private static MemorySize size(Message message, String name) {
    try {
      return MemorySize.ofBytes(message.number(name));
    } catch (IllegalArgumentException e) {
      throw new MalformedMessageException("not a size: " + name, e);
    }
  }

  static String of(SharingMode mode) {
    return switch (mode) {
      case IDLE -> "idle";
      case ALONE -> "alone";
      case OVERLAP -> "overlap";
      case STRICT -> "strict";
    };
  }

  static SharingMode mode(String text) {
    return switch (text) {
      case "idle" -> SharingMode.IDLE;
      case "alone" -> SharingMode.ALONE;
      case "overlap" -> SharingMode.OVERLAP;
      case "strict" -> SharingMode.STRICT;
      default -> throw new MalformedMessageException("no such way of sharing: " + text);
    };
  }

  static String of(GpuHealth health) {
    return switch (health) {
      case HEALTHY -> "healthy";
      case DEGRADED -> "degraded";
      case LOST -> "lost";
    };
  }

  static GpuHealth health(String text) {
    return switch (text) {
      case "healthy" -> GpuHealth.HEALTHY;
      case "degraded" -> GpuHealth.DEGRADED;
      case "lost" -> GpuHealth.LOST;
      default -> throw new MalformedMessageException("no such health: " + text);
    };
  }

  /**
   * Adds states to a message.
   *
   * @param message the message
   * @param states one for each GPU
   */
  public static void put(Message message, List<? extends GpuState> states) {
    message.with(COUNT, states.size());
    for (int i = 0; i < states.size(); i++) {
      GpuState state = states.get(i);
      String at = "state." + i + ".";
      message
          .with(at + "gpu", state.gpu())
          .with(at + "mode", of(state.mode()))
          .with(at + "reason", state.reason())
          .with(at + "holder", state.holder().orElse(""))
          .with(at + "turnNs", state.turnLength().toNanos())
          .with(at + "switches", state.switches());
      message
          .with(at + "free", state.memoryFree().bytes())
          .with(at + "low", state.memoryLowWatermark().bytes())
          .with(at + "high", state.memoryHighWatermark().bytes());
      message
          .with(at + "health", of(state.health()))
          .with(at + "healthReason", state.healthReason());
      putAll(message, at + "held.", state.heldBack());
      putAll(message, at + "suspended.", state.suspended());
    }
  }

  private static void putAll(Message message, String at, List<String> names) {
    for (int i = 0; i < Math.min(MOST_NAMED, names.size()); i++) {
      message.with(at + i, names.get(i));
    }
  }

  /**
   * {@return the states in a message}
   *
   * @param message a message filled by {@link #put}
   */
  public static List<GpuState> states(Message message) {
    List<GpuState> states = new ArrayList<>();
    long count = Math.min(MOST_GPUS, message.number(COUNT));
    for (int i = 0; i < count; i++) {
      String at = "state." + i + ".";
      String holder = message.text(at + "holder");
      states.add(
          new State(
              new GpuId(message.text(at + "gpu")),
              mode(message.text(at + "mode")),
              message.text(at + "reason"),
              holder.isEmpty() ? Optional.empty() : Optional.of(holder),
              List.copyOf(message.under(at + "held.").values()),
              Duration.ofNanos(message.number(at + "turnNs")),
              message.number(at + "switches"),
              size(message, at + "free"),
              size(message, at + "low"),
              size(message, at + "high"),
              List.copyOf(message.under(at + "suspended.").values()),
              health(message.text(at + "health")),
              message.text(at + "healthReason")));
    }
    return List.copyOf(states);
  }
}
