package dev.vgpu.spi;

import dev.vgpu.BackendStatus;
import dev.vgpu.Capabilities;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;

/**
 * One way to keep a virtual GPU to its share. The pool asks it for a {@link TurnGate} per virtual
 * GPU and opens and shuts the gate as the scheduler decides; the backend sees to it that work runs
 * only while the gate is open, and measures the GPU time that it takes.
 */
public interface EnforcementBackend {
  /** {@return whether it can be used here, or why not} Must not throw. */
  BackendStatus status();

  /**
   * {@return what it can enforce on this GPU}
   *
   * @param gpu one of the pool's GPUs
   */
  Capabilities capabilities(PhysicalGpu gpu);

  /**
   * Prepares the enforcement of one virtual GPU.
   *
   * @param id the virtual GPU's name, unique within the pool
   * @param gpu the GPU that it is cut from
   * @param request what is granted
   * @param demand is told when the tenant wants its turn and when it has drained
   * @return its gate, shut
   * @throws VgpuException if it cannot be prepared; nothing is left behind
   */
  TurnGate attach(String id, PhysicalGpu gpu, VirtualGpuRequest request, TurnDemand demand);
}
