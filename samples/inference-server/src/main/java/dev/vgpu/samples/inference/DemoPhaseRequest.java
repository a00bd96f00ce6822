package dev.vgpu.samples.inference;

import com.fasterxml.jackson.annotation.JsonProperty;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** The body of {@code POST /demo/phase}: the models and jobs to run from now on. */
record DemoPhaseRequest(String name, Sharing sharing, List<Model> models, List<Job> offline) {

  /** Whether vgpu is used. */
  enum Sharing {
    @JsonProperty("vgpu")
    VGPU,
    @JsonProperty("none")
    NONE
  }

  /** A model that answers requests. */
  record Model(
      String name,
      @JsonProperty("class") PreemptionClass preemptionClass,
      SharePolicy policy,
      int percent,
      int memoryMiB,
      int maxConcurrentCalls) {
    VirtualGpuRequest request() {
      return DemoPhaseRequest.request(
          name, preemptionClass, policy, percent, memoryMiB, maxConcurrentCalls);
    }
  }

  /** A model that embeds the corpus. */
  record Job(
      String name,
      @JsonProperty("class") PreemptionClass preemptionClass,
      SharePolicy policy,
      int percent,
      int memoryMiB,
      int workers) {
    /** Requests one call at a time; the other workers prepare theirs meanwhile. */
    VirtualGpuRequest request() {
      if (workers < 1 || workers > 64) {
        throw new BadInputException("a job has 1 to 64 workers: name=" + name);
      }
      return DemoPhaseRequest.request(name, preemptionClass, policy, percent, memoryMiB, 1);
    }
  }

  private static VirtualGpuRequest request(
      String name,
      PreemptionClass preemptionClass,
      SharePolicy policy,
      int percent,
      int memoryMiB,
      int maxConcurrentCalls) {
    try {
      VirtualGpuRequest.Builder builder =
          VirtualGpuRequest.builder()
              .name(name)
              .preemptionClass(preemptionClass)
              .policy(policy)
              .memory(MemorySize.ofMebibytes(memoryMiB))
              .maxConcurrentCalls(maxConcurrentCalls);
      return (percent == 0 ? builder : builder.computePercent(percent)).build();
    } catch (IllegalArgumentException e) {
      throw new BadInputException(name + ": " + e.getMessage());
    }
  }

  /** Refuses a phase that cannot be started, before ending the running one. */
  void check() {
    Set<String> names = new HashSet<>();
    models.forEach(model -> checkName(model.request(), names));
    offline.forEach(job -> checkName(job.request(), names));
  }

  private static void checkName(VirtualGpuRequest request, Set<String> names) {
    if (!names.add(request.name())) {
      throw new BadInputException("two tenants have one name: " + request.name());
    }
  }
}
