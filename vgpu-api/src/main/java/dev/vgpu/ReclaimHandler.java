package dev.vgpu;

import dev.vgpu.request.MemorySize;

/** Frees memory of a virtual GPU when its GPU runs short of it. */
@FunctionalInterface
public interface ReclaimHandler {
  /**
   * Frees memory that can be spared, for example by dropping caches or unloading a model that is
   * seldom used. Called on a thread of the pool, never concurrently for one virtual GPU. It may
   * take up to {@link GpuSettings#reclaimAskTimeout()}. If too little is free by then, processes
   * are suspended and finally ended. An exception that it throws is logged.
   *
   * @param wanted how much is missing on the GPU; freeing less helps too
   */
  void reclaim(MemorySize wanted);
}
