package dev.vgpu.core.wire;

import dev.vgpu.request.Capabilities;
import dev.vgpu.request.FailureMode;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemoryMobility;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Encodes and decodes requests, for messages and files. */
public final class RequestValues {
  private RequestValues() {}

  /**
   * {@return the values of a request}
   *
   * @param request the request
   */
  public static Map<String, String> of(VirtualGpuRequest request) {
    Map<String, String> values = new LinkedHashMap<>();
    values.put("name", request.name());
    request.computePercent().ifPresent(percent -> values.put("percent", "" + percent));
    values.put("memory", "" + request.memory().bytes());
    values.put("policy", request.policy().name());
    values.put("class", request.preemptionClass().name());
    values.put("calls", "" + request.maxConcurrentCalls());
    values.putAll(of(request.gpus()));
    if (request.gpuCount() > 1) {
      values.put("gpus", "" + request.gpuCount());
    }
    request.backend().ifPresent(backend -> values.put("backend", backend));
    request.part().ifPresent(part -> values.put("part", part));
    values.put("failure", request.failureMode().name());
    if (request.memoryMobility() != MemoryMobility.FIXED) {
      values.put("mobility", request.memoryMobility().name());
    }
    of(request.requires()).forEach((name, value) -> values.put("requires." + name, value));
    return values;
  }

  /**
   * {@return the ids of GPUs as values: {@code gpu}, {@code gpu.1}, {@code gpu.2}}
   *
   * @param gpus may be empty
   */
  public static Map<String, String> of(List<GpuId> gpus) {
    Map<String, String> values = new LinkedHashMap<>();
    for (int i = 0; i < gpus.size(); i++) {
      values.put(i == 0 ? "gpu" : "gpu." + i, gpus.get(i).value());
    }
    return values;
  }

  /**
   * {@return the GPUs named by values}
   *
   * @param values finds a value by its name
   * @throws MalformedMessageException if no GPU is named
   */
  public static List<GpuId> gpus(Function<String, Optional<String>> values) {
    List<GpuId> gpus = named(values);
    if (gpus.isEmpty()) {
      throw new MalformedMessageException("no GPU is named");
    }
    return gpus;
  }

  private static List<GpuId> named(Function<String, Optional<String>> values) {
    List<GpuId> gpus = new ArrayList<>();
    Optional<String> next = values.apply("gpu");
    while (next.isPresent() && gpus.size() < VirtualGpuRequest.MAX_GPU_COUNT) {
      gpus.add(new GpuId(next.get()));
      next = values.apply("gpu." + gpus.size());
    }
    return List.copyOf(gpus);
  }

  /**
   * {@return the request described by values}
   *
   * @param values values from {@link #of(VirtualGpuRequest)}
   * @throws MalformedMessageException if they do not describe a request
   */
  public static VirtualGpuRequest request(Map<String, String> values) {
    try {
      VirtualGpuRequest.Builder builder =
          VirtualGpuRequest.builder()
              .name(need(values, "name"))
              .memory(MemorySize.ofBytes(Long.parseLong(need(values, "memory"))))
              .policy(SharePolicy.valueOf(need(values, "policy")))
              .preemptionClass(PreemptionClass.valueOf(need(values, "class")))
              .maxConcurrentCalls(Integer.parseInt(need(values, "calls")))
              .failureMode(FailureMode.valueOf(need(values, "failure")))
              .requires(capabilities("requires.", values));
      String percent = values.get("percent");
      if (percent != null) {
        builder.computePercent(Integer.parseInt(percent));
      }
      List<GpuId> gpus = named(name -> Optional.ofNullable(values.get(name)));
      if (!gpus.isEmpty()) {
        builder.gpus(gpus);
      }
      String backend = values.get("backend");
      if (backend != null) {
        builder.backend(backend);
      }
      String part = values.get("part");
      if (part != null) {
        builder.part(part);
      }
      builder.gpuCount(Integer.parseInt(values.getOrDefault("gpus", "1")));
      builder.memoryMobility(
          MemoryMobility.valueOf(values.getOrDefault("mobility", MemoryMobility.FIXED.name())));
      return builder.build();
    } catch (IllegalArgumentException e) {
      throw new MalformedMessageException("not a request: " + e.getMessage(), e);
    }
  }

  /**
   * {@return the values of capabilities}
   *
   * @param capabilities the capabilities
   */
  public static Map<String, String> of(Capabilities capabilities) {
    Map<String, String> values = new LinkedHashMap<>();
    values.put("memory", capabilities.memory().name());
    values.put("compute", capabilities.compute().name());
    values.put("preemption", capabilities.preemption().name());
    values.put("isolation", capabilities.faultIsolation().name());
    values.put(
        "worksFor",
        capabilities.worksFor().stream()
            .sorted()
            .map(Capabilities.Scope::name)
            .collect(Collectors.joining(",")));
    return values;
  }

  /**
   * {@return the capabilities described by values}
   *
   * @param prefix the prefix of each name
   * @param values values from {@link #of(Capabilities)}
   */
  public static Capabilities capabilities(String prefix, Map<String, String> values) {
    String worksFor = need(values, prefix + "worksFor");
    return Capabilities.builder()
        .memory(Capabilities.Memory.valueOf(need(values, prefix + "memory")))
        .compute(Capabilities.Compute.valueOf(need(values, prefix + "compute")))
        .preemption(Capabilities.Preemption.valueOf(need(values, prefix + "preemption")))
        .faultIsolation(Capabilities.FaultIsolation.valueOf(need(values, prefix + "isolation")))
        .worksFor(
            Arrays.stream(worksFor.split(",", -1))
                .filter(scope -> !scope.isEmpty())
                .map(Capabilities.Scope::valueOf)
                .toArray(Capabilities.Scope[]::new))
        .build();
  }

  /**
   * {@return a required value}
   *
   * @throws IllegalArgumentException if it is missing
   */
  public static String need(Map<String, String> values, String name) {
    String value = values.get(name);
    if (value == null) {
      throw new IllegalArgumentException("a value is missing: " + name);
    }
    return value;
  }
}
