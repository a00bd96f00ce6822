package dev.vgpu.cli.run;

import dev.vgpu.cli.text.Words;
import dev.vgpu.request.Capabilities.Compute;
import dev.vgpu.request.Capabilities.FaultIsolation;
import dev.vgpu.request.Capabilities.Memory;
import dev.vgpu.request.Capabilities.Preemption;
import dev.vgpu.request.Capabilities.Scope;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** The option {@code --require}: capabilities of a virtual GPU. Mutable; picocli sets it. */
final class RequiredOptions {
  @Option(
      names = "--require",
      split = ",",
      paramLabel = "WHAT:HOW",
      description =
          "What must hold, or it is refused: memory:exact, compute:spatial, preemption:inside-kernel"
              + " (or between-kernels), faults:isolated, for:container (or vm, this-jvm). Several,"
              + " by commas.")
  private final List<String> required = new ArrayList<>();

  /** Adds the required capabilities to a request. */
  void addTo(VirtualGpuRequest.Builder request) {
    required.forEach(text -> add(request, text));
  }

  static VirtualGpuRequest.Builder add(VirtualGpuRequest.Builder request, String text) {
    String[] parts = text.strip().toLowerCase(Locale.ROOT).split("[:=]", 2);
    String how = parts.length < 2 ? "" : parts[1];
    return switch (parts[0]) {
      case "memory" -> request.require(value(Memory.values(), text, how));
      case "compute" -> request.require(value(Compute.values(), text, how));
      case "preemption" -> request.require(value(Preemption.values(), text, how));
      case "faults" -> request.require(value(FaultIsolation.values(), text, how));
      case "for" -> request.require(value(Scope.values(), text, how));
      default ->
          throw new TypeConversionException(
              "not a demand: '"
                  + text
                  + "' (memory, compute, preemption, faults or for, a colon, and how)");
    };
  }

  private static <E extends Enum<E>> E value(E[] values, String text, String how) {
    Optional<E> found =
        Arrays.stream(values).filter(value -> Words.word(value).equals(how)).findFirst();
    return found.orElseThrow(
        () ->
            new TypeConversionException(
                "not a demand: '"
                    + text
                    + "' (one of "
                    + Arrays.stream(values).map(Words::word).collect(Collectors.joining(", "))
                    + ")"));
  }
}
