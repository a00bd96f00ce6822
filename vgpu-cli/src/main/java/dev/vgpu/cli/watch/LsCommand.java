package dev.vgpu.cli.watch;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuPool;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.Lines;
import dev.vgpu.cli.console.TextTable;
import dev.vgpu.cli.text.LeaseTexts;
import dev.vgpu.cli.text.Words;
import dev.vgpu.watch.GpuLease;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Lists the virtual GPUs of this node. */
@Command(
    name = "ls",
    description = "List the virtual GPUs, with their GPUs, usage and owners.",
    footer = {
      "",
      "On a terminal that is too narrow, the device's name is shortened, and the owner and the device"
          + " are left out; they are in what goes to a file or a pipe, and in --json.",
      "",
      "Exit codes: 0 done, 1 they cannot be listed, 2 wrong usage."
    })
public final class LsCommand implements Callable<Integer> {
  /** How much is shown of each lease. Narrower shapes drop the least important columns first. */
  private enum Shape {
    WHOLE(3, true, true),
    WITHOUT_OWNER(3, false, true),
    FEW_PROCESSES(1, false, true),
    BARE(1, false, false);

    private static final int OTHERS = 6;
    private final int pids;
    private final boolean owner;
    private final boolean device;

    Shape(int pids, boolean owner, boolean device) {
      this.pids = pids;
      this.owner = owner;
      this.device = device;
    }

    private int last() {
      return OTHERS + (owner ? 1 : 0);
    }
  }

  private final CliContext context;

  @Mixin private final JsonOption json = new JsonOption();

  /** Creates the command. */
  public LsCommand(CliContext context) {
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
        lines(leases, context.console().tableWidth()).forEach(context.console().out()::println);
      }
    }
    return 0;
  }

  /** The table in the widest shape that fits. The narrowest shape also shortens names. */
  private static List<String> lines(List<GpuLease> leases, int width) {
    for (Shape shape : Shape.values()) {
      TextTable table = table(leases, shape);
      List<String> lines = shape.device ? table.lines(width, shape.last()) : table.lines(width, 0);
      if (lines.stream().allMatch(line -> line.length() <= width)) {
        return lines;
      }
    }
    return table(leases, Shape.BARE).lines(width, 0).stream()
        .map(line -> Lines.cut(line, width))
        .toList();
  }

  private static TextTable table(List<GpuLease> leases, Shape shape) {
    List<String> head =
        new ArrayList<>(List.of("id", "class", "yields", "share", "memory", "processes"));
    head.addAll(shape.owner ? List.of("owner") : List.of());
    head.addAll(shape.device ? List.of("device") : List.of());
    TextTable table = new TextTable(head.toArray(String[]::new));
    for (GpuLease lease : leases) {
      List<String> row = new ArrayList<>();
      row.add(lease.id());
      row.add(Words.of(lease.request().preemptionClass()));
      row.add(lease.preemption().map(Words::word).orElse("-"));
      row.add(LeaseTexts.share(lease));
      row.add(LeaseTexts.memory(lease));
      row.add(processes(lease, shape.pids));
      row.addAll(shape.owner ? List.of(owner(lease)) : List.of());
      row.addAll(shape.device ? List.of(LeaseTexts.gpus(lease)) : List.of());
      table.row(row.toArray(String[]::new));
    }
    return table;
  }

  /** The ids of its first processes, and how many more there are. */
  private static String processes(GpuLease lease, int shown) {
    List<Long> pids = lease.processes();
    String first = pids.stream().limit(shown).map(String::valueOf).collect(Collectors.joining(" "));
    if (pids.isEmpty()) {
      return "-";
    }
    return pids.size() <= shown ? first : first + " +" + (pids.size() - shown);
  }

  /** The process that owns the lease, by id and name. */
  private static String owner(GpuLease lease) {
    Optional<String> name =
        ProcessHandle.of(lease.pid())
            .flatMap(process -> process.info().command())
            .map(command -> String.valueOf(Path.of(command).getFileName()));
    return lease.pid() + name.map(text -> " (" + text + ")").orElse("");
  }
}
