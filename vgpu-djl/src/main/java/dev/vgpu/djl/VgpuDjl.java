package dev.vgpu.djl;

import static java.util.Objects.requireNonNull;
import static java.util.Objects.requireNonNullElse;

import ai.djl.MalformedModelException;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ModelNotFoundException;
import ai.djl.repository.zoo.ZooModel;
import dev.vgpu.CallOptions;
import dev.vgpu.GpuCapacityException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.memory.ModelWeights;
import dev.vgpu.request.MemorySize;
import java.io.IOException;

/**
 * Puts Deep Java Library models under a virtual GPU. Code that uses the model does not change: each
 * prediction of each of its predictors is one call. Several models may use one virtual GPU. Safe
 * for use by several threads.
 *
 * <p>A call covers all that {@code predict} or {@code batchPredict} does, including the
 * translator's work, because an engine with its own queues finishes only when the output is read. A
 * call is not cancelled: more urgent tenants wait until the prediction ends. So offline work should
 * predict in small batches.
 *
 * <p>Callers need not state memory. The first prediction of a number of inputs gets all of the
 * quota that the models leave, and its peak is measured. Later ones state that peak, and run
 * concurrently as far as they fit. If the translator yields larger shapes than were measured, the
 * prediction is begun again as a first one: its translator's input is processed twice.
 *
 * <p>For CUDA, call {@link VirtualGpu#attachThisJvm()} before DJL loads its engine. Otherwise
 * nothing counts the memory, and each prediction that states none has all of the quota that the
 * models leave.
 */
public final class VgpuDjl {
  private VgpuDjl() {}

  /**
   * Loads a model in a call of a virtual GPU. Downloads happen before the call.
   *
   * @param gpu the virtual GPU of the model's predictions; not closed with the model
   * @param criteria which model, and its types
   * @param weights the part of the quota that the loaded model holds until it is closed; above 0
   * @param options of each prediction: how long it waits; memory stated here is not learnt
   * @return the model, to be used like any other
   * @throws GpuCapacityException if the weights do not fit what is left of the quota
   * @throws IOException if the model cannot be read
   * @throws ModelNotFoundException if there is no such model
   * @throws MalformedModelException if the engine does not load it
   * @throws InterruptedException if this thread is interrupted while it waits for its turn
   */
  public static <I, O> ZooModel<I, O> load(
      VirtualGpu gpu, Criteria<I, O> criteria, MemorySize weights, CallOptions options)
      throws IOException, ModelNotFoundException, MalformedModelException, InterruptedException {
    requireNonNull(options, "options");
    criteria.downloadModel();
    ModelWeights held =
        new ModelWeights(gpu, requireNonNullElse(criteria.getModelName(), "unnamed"));
    try {
      held.reserve(weights.bytes());
      return new VgpuModel<>(gpu, loaded(gpu, criteria), options, held);
    } catch (Throwable e) {
      held.close();
      throw e;
    }
  }

  private static <I, O> ZooModel<I, O> loaded(VirtualGpu gpu, Criteria<I, O> criteria)
      throws IOException, ModelNotFoundException, MalformedModelException, InterruptedException {
    try {
      return gpu.call(criteria::loadModel);
    } catch (IOException
        | ModelNotFoundException
        | MalformedModelException
        | InterruptedException
        | RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Puts a loaded model under a virtual GPU.
   *
   * @param gpu the virtual GPU of its predictions; not closed with the model
   * @param model closed with the result
   * @param options of each prediction: how long it waits; memory stated here is not learnt
   * @return the model to use from now on
   */
  public static <I, O> ZooModel<I, O> model(
      VirtualGpu gpu, ZooModel<I, O> model, CallOptions options) {
    requireNonNull(options, "options");
    return new VgpuModel<>(gpu, model, options, new ModelWeights(gpu, model.getName()));
  }
}
