package dev.vgpu.cli.mig;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.console.Lines;
import dev.vgpu.cli.console.TextTable;
import dev.vgpu.cli.machine.RunDirectory;
import dev.vgpu.nvml.mig.MigDriver;
import dev.vgpu.nvml.mig.MigHolders;
import dev.vgpu.nvml.mig.MigState;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.GpuId;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Lists the MIG instances. */
@Command(
    name = "list",
    description = "List the GPUs that can be cut, and what they are cut into.",
    footer = {"", "Exit codes: 0 done, 1 the GPUs cannot be listed, 2 wrong usage."})
final class MigListCommand implements Callable<Integer> {
  private static final int DEVICE = 3;
  private static final int LEASE = 4;
  private static final int SHORT_DEVICE = 26;

  private final CliContext context;

  @Mixin private final JsonOption json = new JsonOption();

  MigListCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    try (MigDriver driver = MigDriver.open()) {
      Map<GpuId, String> holders =
          MigHolders.ofDevices(RunDirectory.of(context.environment()).path());
      if (json.isGiven()) {
        JsonOption.print(context.console(), json(driver.gpus(), holders));
      } else {
        driver.gpus().forEach(state -> print(state, holders));
      }
    }
    return 0;
  }

  private void print(MigState state, Map<GpuId, String> holders) {
    Console console = context.console();
    lines(state, holders, console.textWidth(), console.tableWidth())
        .forEach(console.out()::println);
  }

  /** If the table is too wide, shortens the names of devices, then those of leases. */
  static List<String> lines(
      MigState state, Map<GpuId, String> holders, int textWidth, int tableWidth) {
    String title = state.gpu() + "  " + state.model() + "  MIG " + mode(state);
    List<String> lines = new ArrayList<>(Lines.fitting(title, textWidth));
    if (state.geometry().isEmpty()) {
      return lines;
    }
    String profiles =
        state.geometry().get().profiles().stream()
            .map(profile -> profile.name() + " at " + profile.starts())
            .collect(Collectors.joining(", "));
    lines.addAll(Lines.whole("  profiles: " + profiles, textWidth));
    if (state.instances().isEmpty()) {
      return lines;
    }
    List<String> whole = table(state, holders, Integer.MAX_VALUE).lines();
    boolean fits = whole.stream().allMatch(line -> line.length() <= tableWidth);
    lines.addAll(
        fits ? whole : table(state, holders, SHORT_DEVICE).lines(tableWidth, LEASE, DEVICE));
    return lines;
  }

  private static TextTable table(MigState state, Map<GpuId, String> holders, int deviceWidth) {
    TextTable table = new TextTable("  instance", "profile", "slices", "device", "lease");
    state.instances().forEach(each -> row(table, state, each, holders, deviceWidth));
    return table;
  }

  /** A GPU instance that is divided further has its compute instances listed below it. */
  private static void row(
      TextTable table,
      MigState state,
      MigState.Instance each,
      Map<GpuId, String> holders,
      int deviceWidth) {
    String slices = each.start() + "-" + (each.start() + each.memorySlices() - 1);
    String profile = profileName(state, each.profileId());
    boolean isWhole = each.parts().size() == 1 && each.freeSlices() == 0;
    if (each.parts().isEmpty()) {
      table.row("  " + each.id(), profile, slices, "none", "none");
    } else if (!isWhole) {
      String free = each.freeSlices() + " of " + each.computeSlices() + " compute slices free";
      table.row("  " + each.id(), profile, slices, free, "");
    }
    for (MigState.Part part : each.parts()) {
      table.row(
          isWhole ? "  " + each.id() : "    " + each.id() + "." + part.id(),
          isWhole ? profile : part.computeSlices() + "c." + profile,
          isWhole ? slices : "",
          Lines.cutInside(part.device().value(), deviceWidth),
          holders.getOrDefault(part.device(), "not ours"));
    }
  }

  private static String mode(MigState state) {
    if (state.geometry().isEmpty()) {
      return "is not supported";
    }
    String now = state.on() ? "is on" : "is off";
    return state.on() == state.pending() ? now : now + ", and is to change when nothing uses it";
  }

  static ObjectNode json(List<MigState> states, Map<GpuId, String> holders) {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    ArrayNode gpus = json.putArray("gpus");
    for (MigState state : states) {
      ObjectNode gpu =
          gpus.addObject()
              .put("id", state.gpu().value())
              .put("model", state.model())
              .put("supported", state.geometry().isPresent())
              .put("mode", state.on())
              .put("pending", state.pending());
      ArrayNode instances = gpu.putArray("instances");
      for (MigState.Instance each : state.instances()) {
        ObjectNode instance =
            instances
                .addObject()
                .put("id", each.id())
                .put("profile", profileName(state, each.profileId()))
                .put("start", each.start())
                .put("memory_slices", each.memorySlices())
                .put("compute_slices", each.computeSlices())
                .put("free_compute_slices", each.freeSlices());
        ArrayNode devices = instance.putArray("devices");
        for (MigState.Part part : each.parts()) {
          devices
              .addObject()
              .put("id", part.device().value())
              .put("compute_slices", part.computeSlices())
              .put("lease", holders.get(part.device()));
        }
      }
    }
    return json;
  }

  private static String profileName(MigState state, int id) {
    return state
        .geometry()
        .flatMap(geometry -> geometry.profile(id))
        .map(MigProfile::name)
        .orElse("profile " + id);
  }
}
