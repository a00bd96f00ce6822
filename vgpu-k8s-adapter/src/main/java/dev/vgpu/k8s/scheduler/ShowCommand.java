package dev.vgpu.k8s.scheduler;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.k8s.http.ApiFailures;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code kubectl vgpu}: which pods hold which GPUs on which node, and why others wait. */
@Command(
    name = "show",
    description =
        "Show which pods hold what on which node, and why others wait (kubectl vgpu). Uses the"
            + " current context of $KUBECONFIG, or of ~/.kube/config.")
public final class ShowCommand implements Callable<Integer> {
  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  @Option(
      names = {"-n", "--namespace"},
      paramLabel = "NAME",
      description = "Only pods of this namespace. Default: all.")
  private String namespace = "";

  @Option(names = "--json", description = "Print a JSON list with an object for each row.")
  private boolean isJson;

  /** Used by picocli, which then sets the options. */
  public ShowCommand() {}

  @Override
  public Integer call() throws JsonProcessingException {
    PrintWriter out = spec.commandLine().getOut();
    List<PodRow> rows;
    try (KubernetesClient api = new KubernetesClientBuilder().build()) {
      rows = PodRow.of(pods(api), claims(api));
    }
    if (isJson) {
      out.println(new ObjectMapper().writerWithDefaultPrettyPrinter().writeValueAsString(rows));
    } else if (rows.isEmpty()) {
      spec.commandLine().getErr().println("No pod holds a GPU of vgpu, or waits for one.");
    } else {
      lines(rows).forEach(out::println);
    }
    out.flush();
    return 0;
  }

  private List<Pod> pods(KubernetesClient api) {
    return namespace.isEmpty()
        ? api.pods().inAnyNamespace().list().getItems()
        : api.pods().inNamespace(namespace).list().getItems();
  }

  /** {@return the claims; none if the cluster is older than they are, or does not show them} */
  private List<ResourceClaim> claims(KubernetesClient api) {
    try {
      return namespace.isEmpty()
          ? api.resources(ResourceClaim.class).inAnyNamespace().list().getItems()
          : api.resources(ResourceClaim.class).inNamespace(namespace).list().getItems();
    } catch (KubernetesClientException e) {
      if (!ApiFailures.isMissing(e)) {
        throw e;
      }
      if (!ApiFailures.isGone(e)) {
        spec.commandLine().getErr().println("Without what claims have: " + e.getMessage());
      }
      return List.of();
    }
  }

  /** {@return the rows as a table with a title} */
  static List<String> lines(List<PodRow> rows) {
    List<String> lines = new ArrayList<>();
    lines.add(
        line(
            "NODE",
            "POD",
            "REQUEST",
            "SHARE",
            "MEMORY",
            "POLICY",
            "CLASS",
            "GPUS, OR WHY IT WAITS"));
    for (PodRow row : rows) {
      lines.add(
          line(
              row.node(),
              row.namespace() + "/" + row.pod(),
              row.request(),
              row.count() > 1 ? row.count() + " x " + row.share() : row.share(),
              row.memory(),
              row.policy(),
              row.preemptionClass(),
              (String.join(" ", row.gpus()) + " " + row.why()).strip()));
    }
    return lines;
  }

  private static String line(String... cells) {
    Object[] shown = new Object[cells.length];
    for (int i = 0; i < cells.length; i++) {
      shown[i] = cells[i].isEmpty() ? "-" : cells[i];
    }
    return String.format(Locale.ROOT, "%-24s %-32s %-16s %8s %9s %-12s %-8s %s", shown).strip();
  }
}
