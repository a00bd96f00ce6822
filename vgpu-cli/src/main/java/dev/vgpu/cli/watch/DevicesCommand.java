package dev.vgpu.cli.watch;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuPool;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.Lines;
import dev.vgpu.cli.text.DeviceTexts;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Lists the GPUs of this machine. */
@Command(
    name = "devices",
    description = "List the GPUs that virtual GPUs can be cut from, and how they are.",
    footer = {"", "Exit codes: 0 done, 1 the GPUs cannot be listed, 2 wrong usage."})
public final class DevicesCommand implements Callable<Integer> {
  private final CliContext context;

  @Mixin private final JsonOption json = new JsonOption();

  /** Creates the command. */
  public DevicesCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    try (GpuPool pool = context.pools().get()) {
      if (json.isGiven()) {
        JsonOption.print(context.console(), json(pool));
      } else {
        lines(pool).forEach(context.console().out()::println);
        if (DeviceTexts.onlyHost(pool)) {
          context.console().out().println();
          context.console().out().println(DeviceTexts.HOST_EXPLAINED);
        }
      }
    }
    return 0;
  }

  /** A GPU with its readings below it, and a MIG instance below its GPU, within 80 columns. */
  private static List<String> lines(GpuPool pool) {
    List<String> lines = new ArrayList<>();
    Look look = Look.at(pool);
    for (PhysicalGpu gpu : pool.gpus()) {
      GpuReading reading = look.readings().get(gpu.id());
      GpuState state = look.states().get(gpu.id());
      boolean isInstance = reading != null && reading.properties().containsKey("parent");
      String indent = isInstance ? "  " : "";
      lines.add(indent + gpu.id() + "  " + gpu.model() + " (" + gpu.provider() + ")");
      DeviceTexts.trouble(reading, state).ifPresent(trouble -> add(lines, indent, trouble));
      long leases = leases(pool, gpu);
      add(
          lines,
          indent,
          Optional.ofNullable(reading)
                  .flatMap(DeviceTexts::memory)
                  .orElse(DeviceTexts.gibibytes(gpu.memory()))
              + ", "
              + DeviceTexts.gibibytes(gpu.usableMemory())
              + " for quotas, "
              + leases
              + (leases == 1 ? " lease" : " leases"));
      if (reading != null && reading.health() != GpuHealth.LOST) {
        add(lines, indent, DeviceTexts.load(reading));
        add(lines, indent, isInstance ? "" : DeviceTexts.properties(reading));
        add(lines, indent, DeviceTexts.nvLinks(reading));
        add(lines, indent, DeviceTexts.modes(reading));
        add(lines, indent, processes(reading));
      }
    }
    return lines;
  }

  private static String processes(GpuReading reading) {
    int count = reading.processes().size();
    return count == 0 ? "" : count + (count == 1 ? " process" : " processes");
  }

  private static void add(List<String> lines, String indent, String text) {
    if (!text.isEmpty()) {
      lines.addAll(Lines.wrapped(indent + "  " + text));
    }
  }

  /** The readings and states of the GPUs at one moment. */
  private record Look(Map<GpuId, GpuReading> readings, Map<GpuId, GpuState> states) {
    static Look at(GpuPool pool) {
      Map<GpuId, GpuReading> readings = new HashMap<>();
      pool.readings().forEach(reading -> readings.put(reading.gpu(), reading));
      Map<GpuId, GpuState> states = new HashMap<>();
      pool.states().forEach(state -> states.put(state.gpu(), state));
      return new Look(readings, states);
    }
  }

  private static ObjectNode json(GpuPool pool) {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.putArray("devices");
    Look look = Look.at(pool);
    for (PhysicalGpu gpu : pool.gpus()) {
      ObjectNode row =
          json.withArray("devices")
              .addObject()
              .put("id", gpu.id().value())
              .put("model", gpu.model())
              .put("memory_bytes", gpu.memory().bytes())
              .put("usable_memory_bytes", gpu.usableMemory().bytes())
              .put("leases", leases(pool, gpu))
              .put("provider", gpu.provider());
      DeviceTexts.put(row, look.readings().get(gpu.id()), look.states().get(gpu.id()));
    }
    return json;
  }

  private static long leases(GpuPool pool, PhysicalGpu gpu) {
    return pool.leases().stream().filter(lease -> lease.gpus().contains(gpu.id())).count();
  }
}
