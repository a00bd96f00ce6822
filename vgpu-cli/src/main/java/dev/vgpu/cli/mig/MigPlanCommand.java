package dev.vgpu.cli.mig;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuPool;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.Lines;
import dev.vgpu.cli.console.TextTable;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.machine.RunDirectory;
import dev.vgpu.nvml.mig.MigDriver;
import dev.vgpu.nvml.mig.MigHolders;
import dev.vgpu.nvml.mig.MigState;
import dev.vgpu.nvml.mig.plan.MigGpu;
import dev.vgpu.nvml.mig.plan.MigPlan;
import dev.vgpu.nvml.mig.plan.MigPlanner;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Shows where an instance would be placed, and why. Changes nothing without {@code --consent}. */
@Command(
    name = "plan",
    description = "Show where a MIG instance would go now, and why. Creates nothing.",
    footer = {
      "",
      "A move destroys an instance and creates it again elsewhere on its GPU. Running programs,"
          + " also offline ones, cannot be moved; end them first (see vgpu ls). Instances that vgpu"
          + " did not create stay.",
      "",
      "'takes' is how many of the next 20 requests a GPU can take, as expected, if larger kinds of"
          + " instances are asked for less often and an instance stays while 4 requests come. The"
          + " GPU that is cut up most and has room is taken, and on it the place that leaves most.",
      "",
      "Exit codes: 0 there is a place, 1 there is none, 2 wrong usage."
    })
final class MigPlanCommand implements Callable<Integer> {
  private static final int MOST_SHOWN = 12;
  private static final int GPU_WIDTH = 28;

  private final CliContext context;

  @Mixin private final JsonOption json = new JsonOption();

  @Parameters(
      arity = "0..1",
      paramLabel = "PROFILE",
      description = "The kind of instance, for example 3g.40gb, or 3g.")
  private @Nullable String profile;

  @Option(
      names = "--memory",
      paramLabel = "SIZE",
      description = "Instead: the smallest kind with at least this much memory.")
  private @Nullable MemorySize memory;

  @Option(
      names = "--compute",
      paramLabel = "PERCENT",
      description = "With --memory: and this part of the GPU's compute slices.")
  private int compute;

  @Option(
      names = "--move",
      description =
          "Where nothing fits, show which instances would have to be recreated elsewhere;"
              + " considers only vgpu's instances that are idle or of offline leases, and were not"
              + " asked for at a place.")
  private boolean move;

  @Option(
      names = "--consent",
      description =
          "With --move: carry it out, for virtual GPUs under which nothing runs. Programs that are"
              + " started under them from then on see the new instance; earlier environment"
              + " variables and containers still name the old one, which is gone.")
  private boolean consent;

  /** The virtual GPUs under which a program runs. */
  private final Set<String> busy = new HashSet<>();

  MigPlanCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() throws UserException {
    if ((profile == null) == (memory == null)) {
      throw new UserException("give a profile, or --memory", null, CommandLine.ExitCode.USAGE);
    }
    if (consent && !move) {
      throw new UserException(
          "--consent is to what --move shows; give both", null, CommandLine.ExitCode.USAGE);
    }
    List<MigGpu> gpus = gpus();
    if (gpus.isEmpty()) {
      throw new UserException(
          "no GPU here has its MIG mode on; see vgpu mig list",
          null,
          CommandLine.ExitCode.SOFTWARE);
    }
    if (gpus.stream().noneMatch(gpu -> wanted(gpu).isPresent())) {
      throw noSuchKind(gpus);
    }
    if (consent) {
      return carryOut(gpus);
    }
    Optional<MigPlan> plan =
        move ? MigPlanner.makeRoom(gpus, this::wanted) : MigPlanner.place(gpus, this::wanted);
    if (json.isGiven()) {
      JsonOption.print(context.console(), json(plan));
    } else {
      print(plan);
    }
    return plan.isPresent() ? 0 : CommandLine.ExitCode.SOFTWARE;
  }

  /** Asks the seat's holder, which knows which instances are vgpu's and which are in use. */
  private int carryOut(List<MigGpu> gpus) {
    VirtualGpuRequest.Builder request =
        VirtualGpuRequest.builder().name("plan").require(Capabilities.FaultIsolation.ISOLATED);
    MigGpu first = gpus.stream().filter(gpu -> wanted(gpu).isPresent()).findFirst().orElseThrow();
    MigProfile kind = wanted(first).orElseThrow();
    if (memory == null) {
      request.part(kind.name()).memory(kind.memory());
    } else {
      request.memory(memory);
      if (compute > 0) {
        request.policy(SharePolicy.FIXED_SHARE).computePercent(compute);
      }
    }
    List<String> moved;
    try (GpuPool pool = context.pools().get()) {
      moved = pool.makeRoom(request.build());
    }
    if (json.isGiven()) {
      ObjectNode done = JsonNodeFactory.instance.objectNode();
      done.putArray("moved");
      moved.forEach(done.withArray("moved")::add);
      JsonOption.print(context.console(), done);
    } else {
      moved.forEach(context.console().out()::println);
      if (moved.isEmpty()) {
        context.console().out().println("There is a place for it as it is; nothing was moved.");
      }
    }
    return 0;
  }

  private static UserException noSuchKind(List<MigGpu> gpus) {
    String kinds =
        gpus.stream()
            .flatMap(gpu -> gpu.geometry().profiles().stream())
            .map(MigProfile::name)
            .distinct()
            .collect(Collectors.joining(", "));
    return new UserException(
        "no GPU here has such a kind of instance; there are " + kinds,
        null,
        CommandLine.ExitCode.SOFTWARE);
  }

  private Optional<MigProfile> wanted(MigGpu gpu) {
    String name = profile;
    MemorySize least = memory;
    if (name != null) {
      return gpu.geometry().profile(name.toLowerCase(Locale.ROOT));
    }
    return gpu.geometry().smallest(least == null ? MemorySize.ZERO : least, compute);
  }

  private List<MigGpu> gpus() {
    Map<GpuId, Map<Integer, List<String>>> holders =
        MigHolders.ofInstances(RunDirectory.of(context.environment()).path());
    Set<String> mayMove = move ? movableLeases() : Set.of();
    List<MigGpu> gpus = new ArrayList<>();
    try (MigDriver driver = MigDriver.open()) {
      for (MigState state : driver.gpus()) {
        Map<Integer, String> ours = new HashMap<>();
        Set<Integer> movable = new HashSet<>();
        holders
            .getOrDefault(state.gpu(), Map.of())
            .forEach(
                (instance, leases) -> {
                  ours.put(instance, String.join(", ", leases));
                  if (mayMove.containsAll(leases)) {
                    movable.add(instance);
                  }
                });
        if (state.on()) {
          state.planned(ours, movable).ifPresent(gpus::add);
        }
      }
    }
    return gpus;
  }

  /** The leases that have no programs, and the offline ones, if they did not ask for a place. */
  private Set<String> movableLeases() {
    Set<String> movable = new HashSet<>();
    try (GpuPool pool = context.pools().get()) {
      for (GpuLease lease : pool.leases()) {
        if (!lease.processes().isEmpty()) {
          busy.add(lease.id());
        }
        boolean isPinned = lease.request().part().filter(part -> part.contains(":")).isPresent();
        if (!isPinned
            && (lease.processes().isEmpty()
                || lease.request().preemptionClass() == PreemptionClass.OFFLINE)) {
          movable.add(lease.id());
        }
      }
    }
    return movable;
  }

  private void print(Optional<MigPlan> plan) {
    PrintStream out = context.console().out();
    if (plan.isEmpty()) {
      out.println(
          move
              ? "There is no place for it, and no room can be made."
              : "There is no place for it; --move tells whether room can be made.");
      return;
    }
    MigPlan.Candidate chosen = plan.get().chosen();
    for (MigPlan.Move each : plan.get().moves()) {
      Lines.whole(
              "Move instance "
                  + each.instance().id()
                  + " of "
                  + each.from()
                  + " (lease "
                  + each.instance().holder()
                  + ") to slice "
                  + each.start()
                  + " of "
                  + each.to()
                  + ": it is destroyed and recreated."
                  + (isBusy(each) ? " What runs there has to be ended first." : ""))
          .forEach(out::println);
    }
    out.println(
        chosen.profile().name() + " goes to slice " + chosen.start() + " of " + chosen.gpu() + ".");
    List<MigPlan.Candidate> shown = plan.get().candidates().stream().limit(MOST_SHOWN).toList();
    TextTable table = new TextTable("gpu", "slice", "takes", "then");
    for (MigPlan.Candidate each : shown) {
      table.row(
          Lines.cutInside(each.gpu().value(), GPU_WIDTH),
          Integer.toString(each.start()),
          String.format(Locale.ROOT, "%.3f", each.optionsBefore()),
          String.format(Locale.ROOT, "%.3f", each.optionsAfter()));
    }
    List<String> rows = table.lines();
    out.println(rows.get(0));
    for (int i = 0; i < shown.size(); i++) {
      out.println(rows.get(i + 1));
      Lines.whole("  leaves " + shown.get(i).remains()).forEach(out::println);
    }
  }

  private boolean isBusy(MigPlan.Move move) {
    return List.of(move.instance().holder().split(", ", -1)).stream().anyMatch(busy::contains);
  }

  private ObjectNode json(Optional<MigPlan> plan) {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.put("fits", plan.isPresent());
    plan.ifPresent(
        found -> {
          json.set("chosen", json(found.chosen()));
          ArrayNode candidates = json.putArray("candidates");
          found.candidates().forEach(each -> candidates.add(json(each)));
          ArrayNode moves = json.putArray("moves");
          for (MigPlan.Move each : found.moves()) {
            moves
                .addObject()
                .put("instance", each.instance().id())
                .put("lease", each.instance().holder())
                .put("from", each.from().value())
                .put("to", each.to().value())
                .put("start", each.start())
                .put("something_runs", isBusy(each));
          }
        });
    return json;
  }

  private static ObjectNode json(MigPlan.Candidate each) {
    return JsonNodeFactory.instance
        .objectNode()
        .put("gpu", each.gpu().value())
        .put("profile", each.profile().name())
        .put("start", each.start())
        .put("options_before", each.optionsBefore())
        .put("options_after", each.optionsAfter())
        .put("remains", each.remains());
  }
}
