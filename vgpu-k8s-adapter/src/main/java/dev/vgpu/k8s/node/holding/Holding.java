package dev.vgpu.k8s.node.holding;

import java.util.List;
import java.util.Optional;

/**
 * The virtual GPUs held for one claim, or for the slot of one container. Immutable.
 *
 * @param key unique on this node: the claim's UID, or {@code slot-N}
 * @param stage its stage
 * @param owner the claim or container for which it is held
 * @param parts the virtual GPUs; at least one
 */
public record Holding(String key, Stage stage, Owner owner, List<Part> parts) {
  /** Checks the key and copies the parts. */
  public Holding {
    requireKey(key);
    parts = List.copyOf(parts);
    if (parts.isEmpty()) {
      throw new IllegalArgumentException("nothing is held: key=" + key);
    }
  }

  /**
   * {@return the key, which becomes part of file names}
   *
   * @param key the caller's key
   * @throws IllegalArgumentException if it is not 1 to 50 letters, digits and dashes
   */
  public static String requireKey(String key) {
    if (!key.matches("[A-Za-z0-9][A-Za-z0-9-]{0,49}")) {
      throw new IllegalArgumentException(
          "not a UID: '" + key + "' (1 to 50 letters, digits and dashes)");
    }
    return key;
  }

  /** The stage of a holding. */
  public enum Stage {
    /** It is being taken. The caller has no answer yet. */
    TAKING,
    /** It is held, and the caller may have been told. */
    TAKEN,
    /** It is being given back. */
    RETURNING
  }

  /**
   * The owner of a holding.
   *
   * @param namespace of the claim or the pod
   * @param name of the claim or the pod
   * @param podUid the pod's UID; empty for a claim, which several pods may share
   * @param container the container; empty for a claim
   */
  public record Owner(
      String namespace, String name, Optional<String> podUid, Optional<String> container) {}

  /**
   * One virtual GPU of a holding.
   *
   * @param device its name in the CDI file, unique on this node
   * @param request the name of the claim's request that it answers; for a slot, the slot's id
   * @param devices its devices in the ResourceSlice, one for each of its GPUs, in their order; for
   *     a slot, the slot's id
   * @param terms its properties
   * @param lease its {@link dev.vgpu.VirtualGpu#id()}, once it was acquired
   */
  public record Part(
      String device,
      String request,
      List<PoolDevice> devices,
      Terms terms,
      Optional<String> lease) {
    /** Copies the list. */
    public Part {
      devices = List.copyOf(devices);
    }

    Part withLease(Optional<String> acquired) {
      return new Part(device, request, devices, terms, acquired);
    }
  }

  /**
   * A device of a ResourceSlice.
   *
   * @param name its name there
   * @param shareId which share of the device it is, as the scheduler named it
   */
  public record PoolDevice(String name, Optional<String> shareId) {}

  Holding at(Stage next) {
    return new Holding(key, next, owner, parts);
  }

  Holding with(List<Part> others) {
    return new Holding(key, stage, owner, others);
  }

  /** {@return whether another holding requests the same virtual GPUs for the same owner} */
  boolean asksAs(Holding other) {
    return owner.equals(other.owner) && withoutLeases(parts).equals(withoutLeases(other.parts));
  }

  private static List<Part> withoutLeases(List<Part> parts) {
    return parts.stream().map(part -> part.withLease(Optional.empty())).toList();
  }
}
