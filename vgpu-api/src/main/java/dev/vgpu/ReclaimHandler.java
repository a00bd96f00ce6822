package dev.vgpu;

/** Is asked to free memory of a virtual GPU when that of its GPU runs short. */
@FunctionalInterface
public interface ReclaimHandler {
  /**
   * Frees memory that can be spared: drops caches, unloads a model that is seldom used. Invoked on
   * a thread of the pool, not twice at the same time for one virtual GPU. How long it may take says
   * {@link GpuSettings#reclaimAskTimeout()}; if too little is free then, processes are suspended
   * and ended at last. One that throws is logged.
   *
   * @param wanted how much is missing on the GPU; less helps too
   */
  void reclaim(MemorySize wanted);
}
