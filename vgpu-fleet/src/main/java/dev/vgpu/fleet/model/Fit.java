package dev.vgpu.fleet.model;

import dev.vgpu.request.MemorySize;
import java.math.BigDecimal;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import java.util.function.ToLongFunction;
import java.util.stream.Stream;

/** Whether a request fits an empty fleet, and if not, what would fit. */
public final class Fit {
  private Fit() {}

  /**
   * Refuses a request that none of its nodes could ever host.
   *
   * @param nodes the fleet's nodes
   * @param request the request
   * @throws IllegalArgumentException if no allowed node could host it; the message says what was
   *     requested and what would fit
   */
  public static void require(List<NodeSpec> nodes, Request request) {
    Shape shape = request.shape();
    for (NodeSpec node : nodes) {
      if (request.allows(node.name()) && emptyState(node).fits(shape)) {
        return;
      }
    }
    List<NodeSpec> own = nodes.stream().filter(node -> request.allows(node.name())).toList();
    throw new IllegalArgumentException("fits no node: " + asked(request) + "; " + fits(own, shape));
  }

  private static NodeState emptyState(NodeSpec node) {
    NodeKind kind = NodeKind.of(node);
    long[] words = new long[node.gpus()];
    Arrays.fill(words, kind.untouched());
    return new NodeState(
        kind, words, node.cpuMillis(), NodeKind.mebibytes(node.hostMemory().bytes()));
  }

  /** {@return a number without needless digits} */
  private static String plain(double number) {
    return BigDecimal.valueOf(number).stripTrailingZeros().toPlainString();
  }

  private static String asked(Request request) {
    Shape shape = request.shape();
    StringBuilder text = new StringBuilder("request=").append(request.name());
    text.append(" gpus=").append(shape.gpus());
    if (shape.isMig()) {
      text.append(" migProfile=").append(shape.migProfile());
    } else if (!shape.isWhole()) {
      text.append(" share=").append(shape.sharePercent());
    }
    text.append(" memory=").append(MemorySize.ofMebibytes(shape.memoryMebibytes()));
    text.append(" cpuMillis=").append(shape.cpuMillis());
    text.append(" hostMemory=").append(MemorySize.ofMebibytes(shape.hostMebibytes()));
    if (shape.memoryPercent() > 0) {
      text.append(" memoryPercent=").append(plain(shape.memoryPercent()));
    }
    return shape.models().isEmpty()
        ? text.toString()
        : text.append(" models=").append(new TreeSet<>(shape.models())).toString();
  }

  private static String fits(List<NodeSpec> nodes, Shape shape) {
    TreeSet<String> models = new TreeSet<>();
    TreeSet<String> profiles = new TreeSet<>();
    nodes.forEach(node -> models.add(node.gpuModel()));
    nodes.forEach(node -> node.migCuts().forEach(cut -> profiles.add(cut.profile())));
    List<NodeSpec> same = nodes.stream().filter(node -> shape.takes(node.gpuModel())).toList();
    if (same.isEmpty()) {
      return "the fleet has the models " + models;
    }
    if (shape.isMig()) {
      return "the fleet has the MIG profiles " + profiles;
    }
    return "of such GPUs a node has at most gpus="
        + most(same.stream(), NodeSpec::gpus)
        + " memory="
        + MemorySize.ofBytes(most(same.stream(), node -> node.gpuMemory().bytes()))
        + " cpuMillis="
        + most(same.stream(), NodeSpec::cpuMillis)
        + " hostMemory="
        + MemorySize.ofBytes(most(same.stream(), node -> node.hostMemory().bytes()));
  }

  private static long most(Stream<NodeSpec> nodes, ToLongFunction<NodeSpec> part) {
    return nodes.mapToLong(part).max().orElse(0);
  }
}
