package dev.vgpu.k8s.scheduler;

import dev.vgpu.k8s.names.PodRefusedException;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.names.PodRequests;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodCondition;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.PrintWriter;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code kubectl vgpu}: which pods hold which GPUs on which node, and why others wait. */
@Command(
    name = "show",
    description = "Show which pods hold what on which node, and why others wait (kubectl vgpu).")
public final class ShowCommand implements Callable<Integer> {
  private static final String FORM = "%-24s %-32s %-10s %5s %9s %-12s %-8s %s";

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  /** Used by picocli, which then sets the options. */
  public ShowCommand() {}

  @Override
  public Integer call() {
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      PrintWriter out = spec.commandLine().getOut();
      lines(client.pods().inAnyNamespace().list().getItems()).forEach(out::println);
      out.flush();
    }
    return 0;
  }

  /**
   * {@return a line for each pod that requests GPUs: first those that have a node, then those that
   * wait}
   */
  static List<String> lines(Collection<Pod> pods) {
    List<String> held = new ArrayList<>();
    List<String> waiting = new ArrayList<>();
    for (Pod pod : pods) {
      String node = pod.getSpec().getNodeName();
      boolean isWaiting = node == null || node.isEmpty();
      line(pod, isWaiting ? "-" : node).ifPresent((isWaiting ? waiting : held)::add);
    }
    held.sort(null);
    waiting.sort(null);
    List<String> all = new ArrayList<>();
    all.add(
        String.format(
                Locale.ROOT,
                FORM,
                "NODE",
                "POD",
                "WORDS",
                "SHARE",
                "MEMORY",
                "POLICY",
                "CLASS",
                "GPUS, OR WHY IT WAITS")
            .strip());
    all.addAll(held);
    all.addAll(waiting);
    return all;
  }

  private static Optional<String> line(Pod pod, String node) {
    String name = pod.getMetadata().getNamespace() + "/" + pod.getMetadata().getName();
    try {
      return PodRequests.of(pod).map(asked -> line(pod, node, name, asked));
    } catch (PodRefusedException e) {
      return Optional.of(
          String.format(
              Locale.ROOT,
              FORM,
              node,
              name,
              "-",
              "-",
              "-",
              "-",
              "-",
              "refused: " + e.getMessage()));
    }
  }

  private static String line(Pod pod, String node, String name, PodRequest asked) {
    String share =
        asked.isWhole() ? "whole" : asked.sharePercent() == 0 ? "-" : asked.sharePercent() + "%";
    String memory =
        asked.isWhole()
            ? "-"
            : asked.memoryPercent() > 0
                ? BigDecimal.valueOf(asked.memoryPercent()).stripTrailingZeros().toPlainString()
                    + "%"
                : asked.memory().toString();
    String last =
        node.equals("-")
            ? reason(pod)
            : Place.of(pod).map(one -> String.join(" ", one.place().ids())).orElse("not told");
    return String.format(
        Locale.ROOT,
        FORM,
        node,
        name,
        asked.system(),
        asked.gpus() > 1 ? asked.gpus() + "x" + share : share,
        memory,
        PodRequests.text(asked.policy()),
        PodRequests.text(asked.preemptionClass()),
        last);
  }

  private static String reason(Pod pod) {
    List<PodCondition> conditions =
        pod.getStatus() == null || pod.getStatus().getConditions() == null
            ? List.of()
            : pod.getStatus().getConditions();
    return conditions.stream()
        .filter(one -> "PodScheduled".equals(one.getType()) && one.getMessage() != null)
        .map(PodCondition::getMessage)
        .findFirst()
        .orElse("not looked at yet");
  }
}
