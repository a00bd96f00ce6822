package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** The node of the suite with its seats, tenants and programs. Confined to one thread. */
final class World implements AutoCloseable {
  /** How much memory a context takes. */
  static final MemorySize CONTEXT = MemorySize.ofMebibytes(64);

  private static final Map<String, String> EMULATOR =
      Map.of("VGPU_EMULATOR", "devices=1,memory=8GiB,context=64MiB");

  private static final long DISK_BYTES = 96L << 20;
  private static final long LEASE_END_NS = 40_000_000_000L;
  private static final long WITNESS_START_NS = 10_000_000_000L;

  final Node node;
  final Seats seats;
  final WallClock clock;
  final FullDisk disk;
  final List<Tenant> tenants;

  /** Leases that programs with several tenants enter; they have no programs of their own. */
  final List<Tenant> companions;

  /** Programs that launch one kernel after the other, and are never attacked. */
  final List<Program> witnesses = new ArrayList<>();

  /** Programs that do anything, and to which anything may happen. */
  final List<Program> programs = new ArrayList<>();

  final Auditor auditor;
  final Machine machine;
  final Waits waits;

  World() throws InterruptedException {
    node = Node.open(EMULATOR);
    machine = new Machine(node.start(Map.of(), "lateness").awaitReady());
    node.setLateness(machine);
    boolean fillable = node.mountRunDirectory(DISK_BYTES);
    disk = new FullDisk(node, fillable);
    clock = new WallClock(node);
    node.addSettings(clock.environment());
    seats = new Seats(node, machine);
    MemorySize quota = MemorySize.ofGibibytes(1);
    tenants =
        List.of(
            new Tenant("burst", SharePolicy.BURST_SHARE, 25, PreemptionClass.NEARLINE, quota),
            new Tenant(
                "fixed",
                SharePolicy.FIXED_SHARE,
                20,
                PreemptionClass.ONLINE,
                MemorySize.ofMebibytes(768)),
            new Tenant("online", SharePolicy.BURST_SHARE, 25, PreemptionClass.ONLINE, quota),
            new Tenant("offline", SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE, quota));
    companions =
        List.of(
            new Tenant(
                "second",
                SharePolicy.BURST_SHARE,
                5,
                PreemptionClass.ONLINE,
                MemorySize.ofMebibytes(256)),
            new Tenant(
                "guest",
                SharePolicy.BEST_EFFORT,
                0,
                PreemptionClass.NEARLINE,
                MemorySize.ofMebibytes(128)));
    for (Tenant tenant : tenants) {
      tenant.acquire(seats.any());
    }
    Map<String, String> bare = Node.bare(tenants.get(0).environment());
    waits = new Waits(machine, this::seatPids, this::pids);
    for (Tenant tenant : tenants.subList(0, tenants.size() - 1)) {
      witnesses.add(new Program(witness(tenant), tenant));
    }
    auditor = new Auditor(node.start(bare, "audit").awaitReady());
  }

  /** On a late machine, the seat may not answer the first attempt in time. */
  private Child witness(Tenant tenant) throws InterruptedException {
    Patience patience = new Patience(machine, this::seatPids);
    while (true) {
      Child child = node.start(tenant.environment(), "load", "1000000", "132", "1", "start");
      try {
        return child.awaitReady();
      } catch (IllegalStateException e) {
        child.close();
        if (patience.isOver(WITNESS_START_NS)) {
          throw e;
        }
      }
    }
  }

  /** Waits for a process and the seat that serves it. */
  Patience patience(Supplier<Long> pid) {
    return new Patience(
        machine, () -> Stream.concat(Stream.of(pid.get()), seatPids().stream()).toList());
  }

  private List<Long> seatPids() {
    return seats.pools().stream().map(pool -> pool.child().pid()).toList();
  }

  /** Without stopped programs: nothing waits for them, and they do not wait. */
  private List<Long> pids() {
    return Stream.concat(witnesses.stream(), programs.stream())
        .filter(program -> !program.stopped)
        .map(program -> program.child.pid())
        .toList();
  }

  /** Starts a random program; it may not be ready yet. */
  Program start(Tenant tenant, long seed, int threads, boolean forks) throws InterruptedException {
    return start(tenant, List.of(), seed, threads, forks);
  }

  /** Starts a random program under further leases too: its threads work for different tenants. */
  Program start(Tenant tenant, List<Tenant> others, long seed, int threads, boolean forks)
      throws InterruptedException {
    renew(tenant);
    List<String> arguments =
        new ArrayList<>(
            List.of(
                "chaos",
                Long.toString(seed),
                Integer.toString(threads),
                Long.toString(tenant.quota.bytes()),
                forks ? "fork" : "stay"));
    for (Tenant other : others) {
      arguments.add(other.lease() + ":" + other.quota.bytes());
    }
    Child child = node.start(tenant.environment(), arguments.toArray(new String[0]));
    return new Program(child, tenant, others.stream().map(Tenant::lease).toList());
  }

  /** The companions, each with a permanent lease that programs enter and leave at any moment. */
  List<Tenant> companions() throws InterruptedException {
    for (Tenant companion : companions) {
      if (companion.isOrphan()) {
        seats.awaitHolder();
        companion.acquire(seats.any());
      }
    }
    return companions;
  }

  private boolean hasProgram(Tenant tenant) {
    return witnesses.stream().anyMatch(program -> program.tenant == tenant)
        || programs.stream().anyMatch(program -> program.tenant == tenant);
  }

  /** Ends a lease without owner and programs; then the tenant acquires a new one. */
  private void renew(Tenant tenant) throws InterruptedException {
    if (!tenant.isOrphan() || hasProgram(tenant)) {
      return;
    }
    seats.awaitHolder();
    Patience patience = new Patience(machine, this::seatPids);
    while (isLeased(tenant.lease())) {
      if (patience.isOver(LEASE_END_NS)) {
        throw new ChaosFailure(
            "a lease without owner and programs does not end: " + tenant.lease());
      }
      NanoClock.sleepMillis(5);
    }
    tenant.acquire(seats.any());
  }

  private boolean isLeased(String lease) throws InterruptedException {
    for (var each : seats.any().leases()) {
      if (each.path("id").asText().equals(lease)) {
        return true;
      }
    }
    return false;
  }

  /** Kills the seat's holder; the leases that it owned have no owner afterwards. */
  void killSeat() throws InterruptedException {
    PoolProcess killed = seats.killHolder();
    Stream.concat(tenants.stream(), companions.stream()).forEach(tenant -> tenant.orphan(killed));
  }

  void kill(Program program) throws InterruptedException {
    program.child.kill();
    programs.remove(program);
  }

  @Override
  public void close() {
    node.close();
  }
}
