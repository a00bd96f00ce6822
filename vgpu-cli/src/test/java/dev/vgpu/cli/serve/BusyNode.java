package dev.vgpu.cli.serve;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.cli.CommandNode;
import dev.vgpu.cli.time.NanoClock;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Eight busy emulated GPUs with 64 tenants and a dashboard, to look at. On each GPU three tenants
 * are programs, and five are models of one JVM. There are refusals, denied allocations, a death and
 * a reclaim of memory. Not part of the build. Arguments: the dashboard's port, and for how many
 * seconds; it needs {@code -Dvgpu.home} with the built samples.
 */
public final class BusyNode {
  private static final List<String> EMULATOR =
      List.of("VGPU_EMULATOR=devices=8,memory=16GiB,context=64MiB");
  private static final int TENANTS = 64;
  private static final NanoClock CLOCK = NanoClock.system();

  /** A model of the JVM: what it asks for, and its rhythm. */
  private record Model(
      String name,
      SharePolicy policy,
      int percent,
      PreemptionClass preemptionClass,
      int runMs,
      int pauseMs) {}

  private static final List<Model> MODELS =
      List.of(
          new Model(
              "embed-multilingual-large-instruct",
              SharePolicy.FIXED_SHARE,
              10,
              PreemptionClass.ONLINE,
              4,
              60),
          new Model("transcribe", SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE, 15, 200),
          new Model("train-lora", SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE, 40, 10),
          new Model("eval", SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE, 25, 400),
          new Model("notebook", SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE, 2, 5_000));

  private final CommandNode node;
  private final GpuPool pool;
  private final long endNs;
  private int made;

  private BusyNode(CommandNode node, GpuPool pool, long endNs) {
    this.node = node;
    this.pool = pool;
    this.endNs = endNs;
  }

  /** Runs until the time is over. */
  public static void main(String[] arguments) throws Exception {
    long endNs = CLOCK.nowNs() + TimeUnit.SECONDS.toNanos(Long.parseLong(arguments[1]));
    try (CommandNode node = CommandNode.open()) {
      Runtime.getRuntime().addShutdownHook(new Thread(() -> end(node))); // On a signal.
      CommandNode.Command serve =
          node.vgpuWith(
                  EMULATOR,
                  "serve",
                  "--web=" + arguments[0],
                  "--oversubscribe=150",
                  "--memory-low=10",
                  "--memory-high=20",
                  "--memory-forecast=0s",
                  "--reclaim-hold-back=1s",
                  "--reclaim-end=500ms")
              .prints("dashboard at");
      System.out.print(serve.out());
      GpuPoolOptions options = GpuPoolOptions.builder().runDirectory(node.runDirectory()).build();
      try (GpuPool pool = GpuPool.open(options)) {
        new BusyNode(node, pool, endNs).live();
      }
    }
  }

  private static void end(CommandNode node) {
    try {
      node.close();
    } catch (IOException e) {
      System.out.println("something is left: " + e);
    }
  }

  private void live() throws Exception {
    List<CommandNode.Command> programs = new ArrayList<>();
    List<PhysicalGpu> gpus = pool.gpus();
    for (int i = 0; i < gpus.size(); i++) {
      startPrograms(i, programs);
      for (Model model : MODELS) {
        start(model, gpus.get(i));
      }
      CLOCK.sleepUntil(CLOCK.nowNs() + TimeUnit.MILLISECONDS.toNanos(1_000));
    }
    CommandNode.await(() -> pool.leases().size() == TENANTS, pool.leases());
    System.out.println("vgpu: " + TENANTS + " tenants on " + gpus.size() + " GPUs");
    for (boolean isFirst = true; CLOCK.nowNs() < endNs; isFirst = false) {
      CLOCK.sleepUntil(CLOCK.nowNs() + TimeUnit.SECONDS.toNanos(7));
      refuse();
      if (isFirst) {
        for (ProcessHandle child : programs.get(4).descendants()) {
          child.destroyForcibly();
        }
      }
    }
  }

  private void startPrograms(int gpu, List<CommandNode.Command> programs) throws Exception {
    String on = "--gpu " + gpu + " --name ";
    if (gpu == 7) { // Together they leave less memory than the low watermark.
      programs.add(
          run(on + "batch-scoring --class offline --memory 8GiB", "hoard", "--limit=6GiB"));
      programs.add(run(on + "chat-23 --class online --memory 10GiB", "hoard", "--limit=8GiB"));
    } else {
      programs.add(
          run(
              on + "chat-" + gpu + " --class online --policy burst --compute 25 --memory 3GiB",
              "burst",
              "--rate=40",
              "--kernels=8",
              "--us=800",
              "--poisson",
              "--hold=700MiB"));
      programs.add(
          run(
              on + "rank-" + gpu + " --policy burst --compute 20 --memory 1536MiB",
              "spin",
              "--us=4000",
              "--hold=512MiB"));
    }
    programs.add(
        gpu == 3
            ? run(on + "greedy --class offline --memory 1GiB", "hoard", "--least=1MiB")
            : run(
                on + "summaries-" + gpu + " --class offline --compute 30 --memory 1536MiB",
                "spin",
                "--us=8000",
                "--hold=900MiB"));
  }

  private CommandNode.Command run(String terms, String program, String... options)
      throws Exception {
    List<String> arguments = new ArrayList<>(List.of("run"));
    arguments.addAll(List.of(terms.split(" ", -1)));
    arguments.addAll(List.of("--", CommandNode.program(program)));
    arguments.addAll(List.of(options));
    arguments.add((program.equals("hoard") ? "--hold=" : "--seconds=") + 10_000);
    return node.vgpuWith(EMULATOR, arguments.toArray(String[]::new));
  }

  private void start(Model model, PhysicalGpu gpu) {
    VirtualGpuRequest.Builder request =
        VirtualGpuRequest.builder()
            .name(model.name() + "-" + made++)
            .gpu(gpu.id())
            .memory(MemorySize.ofMebibytes(800))
            .policy(model.policy())
            .preemptionClass(model.preemptionClass());
    if (model.percent() > 0) {
      request.computePercent(model.percent());
    }
    VirtualGpu held = pool.acquire(request.build());
    Thread thread = new Thread(() -> serve(held, model), model.name());
    thread.setDaemon(true);
    thread.start();
  }

  private void serve(VirtualGpu gpu, Model model) {
    try {
      while (CLOCK.nowNs() < endNs) {
        gpu.call(() -> pause(model.runMs()));
        pause(model.pauseMs());
      }
    } catch (InterruptedException | VgpuException | IllegalStateException e) {
      System.out.println(model.name() + " ends: " + e);
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private static boolean pause(int ms) throws InterruptedException {
    CLOCK.sleepUntil(CLOCK.nowNs() + TimeUnit.MILLISECONDS.toNanos(ms));
    return true;
  }

  private void refuse() {
    try {
      pool.acquire(
              VirtualGpuRequest.builder()
                  .name("too-large")
                  .memory(MemorySize.ofGibibytes(16))
                  .build())
          .close();
    } catch (GpuCapacityException e) {
      System.out.println("refused: " + e.getMessage());
    }
  }
}
