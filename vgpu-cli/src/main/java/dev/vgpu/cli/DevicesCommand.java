package dev.vgpu.cli;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuPool;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.cli.console.TextTable;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Lists the GPUs of this machine. */
@Command(
    name = "devices",
    description = "List the GPUs that virtual GPUs can be cut from.",
    footer = {"", "Exit codes: 0 done, 1 the GPUs cannot be listed, 2 wrong usage."})
final class DevicesCommand implements Callable<Integer> {
  private final CliContext context;

  @Mixin private final JsonOption json = new JsonOption();

  DevicesCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    try (GpuPool pool = context.pools().get()) {
      if (json.isGiven()) {
        JsonOption.print(context.console(), json(pool));
      } else {
        table(pool).lines().forEach(context.console().out()::println);
        if (Devices.onlyHost(pool)) {
          context.console().out().println();
          context.console().out().println(Devices.HOST_EXPLAINED);
        }
      }
    }
    return 0;
  }

  private static TextTable table(GpuPool pool) {
    TextTable table =
        new TextTable("device", "model", "memory", "for quotas", "leases", "provider");
    for (PhysicalGpu gpu : pool.gpus()) {
      table.row(
          gpu.id().value(),
          gpu.model(),
          Devices.gibibytes(gpu.memory()),
          Devices.gibibytes(gpu.usableMemory()),
          Long.toString(leases(pool, gpu)),
          gpu.provider());
    }
    return table;
  }

  private static ObjectNode json(GpuPool pool) {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.putArray("devices");
    for (PhysicalGpu gpu : pool.gpus()) {
      json.withArray("devices")
          .addObject()
          .put("id", gpu.id().value())
          .put("model", gpu.model())
          .put("memory_bytes", gpu.memory().bytes())
          .put("usable_memory_bytes", gpu.usableMemory().bytes())
          .put("leases", leases(pool, gpu))
          .put("provider", gpu.provider());
    }
    return json;
  }

  private static long leases(GpuPool pool, PhysicalGpu gpu) {
    return pool.leases().stream().map(GpuLease::gpu).filter(gpu.id()::equals).count();
  }
}
