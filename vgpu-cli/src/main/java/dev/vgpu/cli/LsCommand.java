package dev.vgpu.cli;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuPool;
import dev.vgpu.cli.console.TextTable;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Lists the virtual GPUs of this node. */
@Command(
    name = "ls",
    description = "List the virtual GPUs: who holds what of which GPU.",
    footer = {"", "Exit codes: 0 done, 1 they cannot be listed, 2 wrong usage."})
final class LsCommand implements Callable<Integer> {
  private static final int SHOWN_PIDS = 3;

  private final CliContext context;

  @Mixin private final JsonOption json = new JsonOption();

  LsCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    try (GpuPool pool = context.pools().get()) {
      List<GpuLease> leases = pool.leases();
      if (json.isGiven()) {
        ObjectNode object = JsonNodeFactory.instance.objectNode();
        object.putArray("leases");
        leases.forEach(
            lease ->
                object.withArray("leases").add(LeaseTexts.json(lease).put("owner", owner(lease))));
        JsonOption.print(context.console(), object);
      } else if (leases.isEmpty()) {
        context.console().out().println("No virtual GPU is held.");
      } else {
        table(leases).lines().forEach(context.console().out()::println);
      }
    }
    return 0;
  }

  private static TextTable table(List<GpuLease> leases) {
    TextTable table =
        new TextTable("id", "class", "yields", "share", "memory", "processes", "owner", "device");
    for (GpuLease lease : leases) {
      table.row(
          lease.id(),
          Words.of(lease.request().preemptionClass()),
          lease.preemption().map(RequiredOptions::word).orElse("-"),
          LeaseTexts.share(lease),
          LeaseTexts.memory(lease),
          processes(lease),
          owner(lease),
          LeaseTexts.gpus(lease));
    }
    return table;
  }

  /** The processes under it: the first ones by their ids. */
  private static String processes(GpuLease lease) {
    List<Long> pids = lease.processes();
    String first =
        pids.stream().limit(SHOWN_PIDS).map(String::valueOf).collect(Collectors.joining(" "));
    if (pids.isEmpty()) {
      return "-";
    }
    return pids.size() <= SHOWN_PIDS ? first : first + " +" + (pids.size() - SHOWN_PIDS);
  }

  /** The process that holds it, by number and name. */
  private static String owner(GpuLease lease) {
    Optional<String> name =
        ProcessHandle.of(lease.pid())
            .flatMap(process -> process.info().command())
            .map(command -> String.valueOf(Path.of(command).getFileName()));
    return lease.pid() + name.map(text -> " (" + text + ")").orElse("");
  }
}
