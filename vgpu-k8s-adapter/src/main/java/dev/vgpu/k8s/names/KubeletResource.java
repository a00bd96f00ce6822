package dev.vgpu.k8s.names;

import dev.vgpu.request.MemorySize;
import java.math.BigDecimal;
import java.util.Collection;

/**
 * A resource that vgpu's device plugin can offer to the kubelet. A container that requests some of
 * it gets a virtual GPU, whatever the amount: the scheduler's reservation says how large it is.
 * Each system needs only the resource that its manifests always contain.
 */
public enum KubeletResource {
  /** vgpu's own: one slot for each container. */
  SLOT(Driver.SLOT, Unit.CONTAINER),
  /** gpushare: GiB. */
  GPUSHARE(GpushareWords.MEMORY, Unit.GIBIBYTE),
  /** gpu-manager: percent of a GPU. */
  GPU_MANAGER(GpuManagerWords.CORE, Unit.PERCENT),
  /** qGPU: GiB. */
  QGPU(QgpuWords.MEMORY, Unit.GIBIBYTE),
  /** qGPU: percent of a GPU, for whole GPUs. Smaller parts come with their memory. */
  QGPU_CORE(QgpuWords.CORE, Unit.PERCENT),
  /** HAMi, and NVIDIA's own name: GPUs. */
  HAMI(VgpuCountWords.HAMI_COUNT, Unit.CONTAINER),
  /** Volcano: GPUs. */
  VOLCANO(VgpuCountWords.VOLCANO_COUNT, Unit.CONTAINER),
  /** Koordinator: percent of a GPU's time and memory. */
  KOORDINATOR(KoordinatorWords.GPU, Unit.PERCENT),
  /** Koordinator: percent of a GPU's time. */
  KOORDINATOR_CORE(KoordinatorWords.CORE, Unit.PERCENT);

  private enum Unit {
    CONTAINER,
    GIBIBYTE,
    PERCENT
  }

  /**
   * Online and nearline shares of a GPU add up to 100 percent, and offline shares to another 100.
   */
  private static final int PERCENT_OF_A_GPU = 200;

  private static final BigDecimal WHOLE_GPU = BigDecimal.valueOf(GpuManagerWords.WHOLE);
  private static final long GIBIBYTE = 1L << 30;

  private final String resource;
  private final Unit unit;

  KubeletResource(String resource, Unit unit) {
    this.resource = resource;
    this.unit = unit;
  }

  /**
   * {@return whether a container that requests this amount gets its virtual GPU by this resource}
   * All resources but one give a virtual GPU for any amount. qGPU's cores alone are whole GPUs; a
   * part of one comes with memory, which gives the virtual GPU.
   *
   * @param amount the requested amount
   */
  public boolean gives(BigDecimal amount) {
    return this != QGPU_CORE || amount.remainder(WHOLE_GPU).signum() == 0;
  }

  /** {@return its name in a container's limits} */
  public String resource() {
    return resource;
  }

  /** {@return the prefix of the ids of its devices; a number follows} */
  public String prefix() {
    return (this == SLOT ? "slot" : plain()) + "-";
  }

  /** {@return the file name of its socket in the kubelet's directory} */
  public String socket() {
    return this == SLOT ? "vgpu.dev.sock" : "vgpu.dev-" + plain() + ".sock";
  }

  /** {@return its name in the characters of a holding's key} */
  private String plain() {
    return resource.replaceAll("[./]", "-");
  }

  /**
   * {@return whether an id is the prefix and a number}
   *
   * @param id the id
   */
  public boolean owns(String id) {
    String prefix = prefix();
    return id.startsWith(prefix)
        && id.length() > prefix.length()
        && id.chars().skip(prefix.length()).allMatch(c -> c >= '0' && c <= '9');
  }

  /**
   * {@return how many devices a node offers: as many units as fit on its GPUs}
   *
   * @param containers how many containers may have a virtual GPU
   * @param gpus the usable memory of each GPU
   */
  public int devices(int containers, Collection<MemorySize> gpus) {
    return switch (unit) {
      case CONTAINER -> containers;
      case GIBIBYTE -> (int) gpus.stream().mapToLong(size -> size.bytes() / GIBIBYTE).sum();
      case PERCENT -> gpus.size() * PERCENT_OF_A_GPU;
    };
  }
}
