package dev.vgpu.k8s.names;

import java.util.Locale;

/** The names by which a cluster knows vgpu. */
public final class Driver {
  /** The DRA driver's name, and the domain of its attributes, capacities, taints and labels. */
  public static final String NAME = "vgpu.dev";

  /** The DRA capacity of a device that is a share: 1 to 100 percent of one GPU's time. */
  public static final String SHARE = "share";

  /** The DRA capacity of a device that is a quota, in bytes. */
  public static final String MEMORY = "memory";

  /**
   * The device class of the parts of GPUs in MIG mode. Other classes of such parts have a name that
   * ends in a dot and this one.
   */
  public static final String MIG_CLASS = "mig." + NAME;

  /** The device plugin's extended resource. A slot is room for the virtual GPU of one container. */
  public static final String SLOT = NAME + "/slot";

  /**
   * The annotation of a pod with the scheduler's reservations for its containers, written once,
   * when the pod is bound. A JSON object with the containers' names as keys, for example {@code
   * {"main":{"gpu":"GPU-…","share":30,"memory":"8Gi","policy":"burst-share", "class":"online"}}}.
   * {@code share} is absent for best effort.
   */
  public static final String RESERVATION = NAME + "/reservation";

  /**
   * The annotation of a Node in which its node role, as a device plugin, lists its GPUs. A JSON
   * list of objects with {@code uuid}, {@code model}, {@code memory} such as 80Gi, and optionally
   * {@code group}, the number of the GPU's NVLink clique or NUMA node.
   */
  public static final String GPUS = NAME + "/gpus";

  /**
   * The annotation of a Node in which its node role lists the other systems' resources that its
   * device plugin offers, separated by commas. Another device plugin may offer a resource of the
   * same name, so the resource alone says nothing.
   */
  public static final String RESOURCES = NAME + "/resources";

  /** The condition of an allocated device for which kube-scheduler waits before it binds a pod. */
  public static final String GANG_COMPLETE = NAME + "/gang-complete";

  /** The condition of an allocated device by which kube-scheduler gives it back. */
  public static final String GANG_FAILED = NAME + "/gang-failed";

  private Driver() {}

  /**
   * {@return the name of a GPU's device in a ResourceSlice: a DNS label}
   *
   * @param gpu its UUID
   */
  public static String device(String gpu) {
    return gpu.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9-]", "-");
  }
}
