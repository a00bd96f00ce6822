package dev.vgpu.k8s;

/** The names by which a cluster knows vgpu. */
public final class Driver {
  /** The DRA driver's name, and the domain of its attributes, capacities, taints and labels. */
  public static final String NAME = "vgpu.dev";

  /** The capacity of a device in DRA that is a share: 1 to 100 percent of one GPU's time. */
  public static final String SHARE = "share";

  /** The capacity of a device in DRA that is a quota, in bytes. */
  public static final String MEMORY = "memory";

  /** The extended resource of the device plugin: a slot is room for one container's virtual GPU. */
  public static final String SLOT = NAME + "/slot";

  /**
   * The annotation of a pod by which the scheduler says what is reserved for its containers, put
   * there once, when the pod is bound: a JSON object with the containers' names as keys, for
   * example {@code {"main":{"gpu":"GPU-…","share":30,"memory":"8Gi","policy":"burst-share",
   * "class":"online"}}}. {@code share} is left out for best effort.
   */
  public static final String RESERVATION = NAME + "/reservation";

  /**
   * The annotation of a Node by which its node role says what GPUs it has, where it is a device
   * plugin: a JSON list of objects with {@code uuid}, {@code model}, {@code memory} as 80Gi, and
   * perhaps {@code group}, the number of its NVLink clique or NUMA node.
   */
  public static final String GPUS = NAME + "/gpus";

  private Driver() {}
}
