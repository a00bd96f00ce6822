package dev.vgpu.bench.chaos.soak;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.bench.chaos.ChaosFailure;
import dev.vgpu.bench.chaos.FullDisk;
import dev.vgpu.bench.chaos.Machine;
import dev.vgpu.bench.chaos.Patience;
import dev.vgpu.bench.chaos.Seats;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;

/** Eight emulated GPUs with tenants, and the disturbances. Confined to one thread. */
final class SoakWorld implements AutoCloseable {
  private static final Map<String, String> EMULATOR =
      Map.of("VGPU_EMULATOR", "devices=8,memory=8GiB,context=64MiB");
  private static final long DISK_BYTES = 160L << 20;
  private static final long FULL_MS = 200;
  private static final long LONGEST_STOP_MS = 300;

  /** What a program prints if no seat answers within two seconds. */
  private static final String NO_SEAT = "error cuInit 802";

  /**
   * After so long, the end of a lease, or a seat that answers programs, is no longer waited for.
   */
  private static final long LONGEST_WAIT_NS = 40_000_000_000L;

  final Node node;
  final Machine machine;
  final Seats seats;
  final FullDisk disk;
  final List<SoakTenant> tenants = new ArrayList<>();
  final Map<String, Integer> counts = new LinkedHashMap<>();
  private final Random random;

  SoakWorld(int count, long seed) throws InterruptedException {
    random = new Random(seed);
    node = Node.open(EMULATOR);
    machine = new Machine(node.start(Map.of(), "lateness").awaitReady());
    node.setLateness(machine);
    disk = new FullDisk(node, node.mountRunDirectory(DISK_BYTES));
    seats = new Seats(node, machine);
    List<String> gpus = new ArrayList<>();
    seats.any().gpus().forEach(gpu -> gpus.add(gpu.asText()));
    for (int i = 0; i < count; i++) {
      tenants.add(new SoakTenant(i, gpus));
    }
  }

  /** Waits for a tenant's program and the seat that serves it. */
  Patience patience(SoakTenant tenant) {
    return new Patience(
        machine,
        () ->
            Stream.concat(Stream.ofNullable(tenant.child).map(Child::pid), seatPids().stream())
                .toList());
  }

  private List<Long> seatPids() {
    return seats.pools().stream().map(pool -> pool.child().pid()).toList();
  }

  /** Starts a tenant in an empty place, one place at a time. */
  boolean fillOne() throws InterruptedException {
    for (SoakTenant tenant : tenants) {
      if (tenant.child == null) {
        come(tenant);
        return true;
      }
    }
    return false;
  }

  private void count(String what) {
    counts.merge(what, 1, Integer::sum);
  }

  private void come(SoakTenant tenant) throws InterruptedException {
    if (tenant.tenant.isOrphan()) {
      seats.awaitHolder();
      tenant.tenant.acquire(seats.any());
      count("leases");
    }
    for (Patience patience = new Patience(machine, this::seatPids); ; ) {
      Child child = node.start(tenant.environment(), SoakTenant.command());
      String answer = child.line();
      count("programs");
      if (answer.equals("ready")) {
        tenant.begin(child);
        return;
      }
      if (!answer.equals(NO_SEAT)) {
        throw new ChaosFailure(child + " of " + tenant.tenant.name + " does not start: " + answer);
      }
      if (patience.isOver(LONGEST_WAIT_NS)) {
        throw new ChaosFailure(
            "no program of " + tenant.tenant.name + " finds a seat that answers");
      }
      count("starts_late");
      seats.awaitHolder();
    }
  }

  private void leave(SoakTenant tenant) throws InterruptedException {
    Child child = tenant.child;
    if (child != null) {
      child.kill();
      count("kills");
      tenant.child = null;
    }
    tenant.touched();
  }

  /** Disturbs one of the tenants. */
  void disturb() throws InterruptedException {
    SoakTenant tenant = tenants.get(random.nextInt(tenants.size()));
    Child child = tenant.child;
    if (child == null) {
      return;
    }
    switch (random.nextInt(10)) {
      case 0, 1, 2, 3 -> {
        leave(tenant);
        if (!tenant.tenant.isOrphan()) {
          tenant.tenant.release();
        }
      }
      case 4, 5 -> {
        leave(tenant);
        if (tenant.tenant.isOrphan()) {
          awaitLeaseEnd(tenant.tenant.lease());
        }
      }
      case 6 -> {
        child.signal("STOP");
        NanoClock.sleepMillis(random.nextLong(LONGEST_STOP_MS));
        child.signal("CONT");
        tenant.touched();
        count("stops");
      }
      default -> {
        tenant.touched();
        tenant.paused = !tenant.paused;
        String ignored = child.ask(tenant.paused ? "pause" : "start").line();
        count("pauses");
      }
    }
  }

  /** Waits until the seat ends a lease that has lost its owner and its program. */
  private void awaitLeaseEnd(String lease) throws InterruptedException {
    Patience patience = new Patience(machine, this::seatPids);
    while (isLeased(lease)) {
      if (patience.isOver(LONGEST_WAIT_NS)) {
        throw new ChaosFailure("a lease without owner and programs does not end: " + lease);
      }
      NanoClock.sleepMillis(20);
    }
  }

  private boolean isLeased(String lease) throws InterruptedException {
    for (JsonNode each : seats.any().leases()) {
      if (each.path("id").asText().equals(lease)) {
        return true;
      }
    }
    return false;
  }

  /** Kills the seat's holder; another process takes the seat over. */
  void changeSeat() throws InterruptedException {
    PoolProcess killed = seats.killHolder();
    tenants.forEach(tenant -> tenant.tenant.orphan(killed));
    seats.awaitHolder();
    JsonNode ignored = seats.any().leases(); // it has rebuilt all leases and serves new processes
    seats.fillUp();
    count("seat_changes");
  }

  /** Fills the disk for a moment; the seat must still answer. */
  void fillDisk() throws InterruptedException {
    if (!disk.isPossible()) {
      return;
    }
    seats.awaitHolder();
    disk.fill();
    try {
      JsonNode ignored = seats.any().leases();
      NanoClock.sleepMillis(FULL_MS);
    } finally {
      disk.free();
    }
    count("full_disks");
  }

  @Override
  public void close() {
    node.close();
  }
}
