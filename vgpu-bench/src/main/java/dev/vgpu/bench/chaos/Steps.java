package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * The steps of chaos. A step depends only on its number and the run's seed, so that a run can be
 * repeated. Confined to one thread.
 */
final class Steps {
  private static final int MOST_PROGRAMS = 8;
  private static final int MOST_STOPPED = 2;
  private static final int CROWD = 6;
  private static final int LONGEST_START_US = 40_000;
  private static final long LONGEST_STOP_MS = 80;
  private static final long LONGEST_SEAT_STOP_MS = 400;
  private static final long LARGEST_CLOCK_STEP_S = 100L * 365 * 86_400;
  private static final double SEAT_GONE_MS = 500;

  /** What a program prints if its context is refused: the driver's out of memory. */
  private static final String NO_CONTEXT = "error cuCtxCreate 2";

  /** What a program prints if no seat answers within 2 s, the limit of its patience. */
  private static final String NO_SEAT = "error cuInit 802";

  /** The part of it that must be the machine's lateness: the rest suffices for a take-over. */
  private static final double SEAT_LATE_MS = 1_000;

  /** A kind of step, with its weight. */
  private enum Kind {
    START(12),
    START_SEVERAL(8),
    KILL(12),
    KILL_STARTING(16),
    CROWD(4),
    STOP(8),
    RESUME(8),
    KILL_STOPPED(5),
    STOP_BRIEFLY(12),
    SEAT_KILLED(4),
    SEAT_STOPPED(5),
    CLOCK(6),
    FULL_DISK(4),
    LEASE_ENDS(5);

    private static final int SUM = sum();
    private final int weight;

    Kind(int weight) {
      this.weight = weight;
    }

    private static int sum() {
      int sum = 0;
      for (Kind kind : values()) {
        sum += kind.weight;
      }
      return sum;
    }

    private static Kind draw(Random random) {
      int left = random.nextInt(SUM);
      for (Kind kind : values()) {
        left -= kind.weight;
        if (left < 0) {
          return kind;
        }
      }
      throw new AssertionError();
    }
  }

  private final World world;
  private final Map<String, Integer> counts = new LinkedHashMap<>();
  private String last = "nothing yet";

  Steps(World world) {
    this.world = world;
  }

  /** How often each kind of event happened. */
  Map<String, Integer> counts() {
    return counts;
  }

  /** The last step. */
  String last() {
    return last;
  }

  /** {@return for how many milliseconds nothing could be served} */
  double take(Random random) throws InterruptedException {
    Kind kind = Kind.draw(random);
    last = kind.name();
    counts.merge(kind.name().toLowerCase(java.util.Locale.ROOT), 1, Integer::sum);
    return switch (kind) {
      case START -> start(random);
      case START_SEVERAL -> startSeveral(random);
      case KILL -> kill(random);
      case KILL_STARTING -> killStarting(random, 1);
      case CROWD -> killStarting(random, CROWD);
      case STOP -> stop(random);
      case RESUME -> resume(random);
      case KILL_STOPPED -> killStopped(random);
      case STOP_BRIEFLY -> stopBriefly(random);
      case SEAT_KILLED -> seatKilled(random);
      case SEAT_STOPPED -> seatStopped(random);
      case CLOCK -> clock(random);
      case FULL_DISK -> fullDisk(random);
      case LEASE_ENDS -> leaseEnds(random);
    };
  }

  private Tenant tenant(Random random) {
    Tenant tenant = world.tenants.get(random.nextInt(world.tenants.size()));
    last += " under " + tenant.name;
    return tenant;
  }

  private List<Program> those(boolean stopped) {
    return world.programs.stream().filter(program -> program.stopped == stopped).toList();
  }

  private static <T> T pick(List<T> list, Random random) {
    return list.get(random.nextInt(list.size()));
  }

  private double start(Random random) throws InterruptedException {
    if (world.programs.size() >= MOST_PROGRAMS) {
      return kill(random);
    }
    startReady(tenant(random), random.nextLong() >>> 1, 1 + random.nextInt(3), true);
    return 0;
  }

  /** Starts a program under several leases; its threads work for different tenants. */
  private double startSeveral(Random random) throws InterruptedException {
    if (world.programs.size() >= MOST_PROGRAMS) {
      return kill(random);
    }
    Tenant tenant = tenant(random);
    List<Tenant> others = world.companions();
    startReady(tenant, others, random.nextLong() >>> 1, 2 + random.nextInt(2), true);
    return 0;
  }

  private void startReady(Tenant tenant, long seed, int threads, boolean forks)
      throws InterruptedException {
    startReady(tenant, List.of(), seed, threads, forks);
  }

  /** Starts a program and waits for it. Only a tenant whose quota is full may refuse it. */
  private void startReady(Tenant tenant, List<Tenant> others, long seed, int threads, boolean forks)
      throws InterruptedException {
    if (isReady(tenant, others, seed, threads, forks)) {
      return;
    }
    List<Program> running =
        those(false).stream().filter(program -> program.tenant == tenant).toList();
    for (Program other : running) {
      other.child.ask("rest");
    }
    if (!isReady(tenant, others, seed, threads, forks)) {
      counts.merge("start_refused", 1, Integer::sum);
      long leftBytes = world.auditor.read().leftBytes(tenant.lease());
      if (leftBytes >= World.CONTEXT.bytes()) {
        throw new ChaosFailure(tenant.name + " refuses a start with " + leftBytes + " bytes left");
      }
    }
    for (Program other : running) {
      other.child.ask("go");
    }
  }

  private boolean isReady(Tenant tenant, List<Tenant> others, long seed, int threads, boolean forks)
      throws InterruptedException {
    String answer;
    Program program;
    do {
      program = world.start(tenant, others, seed, threads, forks);
      answer = startOf(program);
    } while (answer.equals(NO_SEAT));
    if (answer.equals("ready")) {
      world.programs.add(program);
    } else if (!answer.equals(NO_CONTEXT)) {
      throw new ChaosFailure(program + " does not start: " + answer);
    }
    return answer.equals("ready");
  }

  /** The program's first line. "No seat" is accepted only if the machine was too late. */
  private String startOf(Program program) throws InterruptedException {
    long beginNs = NanoClock.nanoTime();
    String answer;
    try {
      answer = program.child.line();
    } catch (IllegalStateException e) {
      throw new ChaosFailure(program + " does not start: " + e.getMessage());
    }
    world.waits.note("start", (NanoClock.nanoTime() - beginNs) / 1e6);
    if (answer.equals(NO_SEAT)) {
      counts.merge("start_late", 1, Integer::sum);
      double lateMs = world.waits.seatLateMs(beginNs);
      if (lateMs < SEAT_LATE_MS) {
        throw new ChaosFailure(
            program + " finds no seat: " + answer + ", late by " + Math.round(lateMs) + " ms");
      }
      world.seats.awaitHolder();
    }
    return answer;
  }

  private double kill(Random random) throws InterruptedException {
    if (those(false).isEmpty()) {
      return start(random);
    }
    Program program = pick(those(false), random);
    last += " " + program;
    world.kill(program);
    return 0;
  }

  /** Kills programs at random points of their start-up, without waiting for any of them. */
  private double killStarting(Random random, int count) throws InterruptedException {
    Tenant tenant = tenant(random);
    List<Child> starting = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      starting.add(world.start(tenant, random.nextLong() >>> 1, 2, false).child);
    }
    for (Child child : starting) {
      NanoClock.sleepMicros(random.nextInt(LONGEST_START_US));
      if (random.nextInt(3) == 0) {
        child.signal("STOP"); // stops it wherever it is
        NanoClock.sleepMicros(random.nextInt(LONGEST_START_US));
      }
      child.kill();
    }
    return 0;
  }

  private double stop(Random random) throws InterruptedException {
    if (those(true).size() >= MOST_STOPPED || those(false).isEmpty()) {
      return resume(random);
    }
    Program program = pick(those(false), random);
    last += " " + program;
    program.child.signal("STOP");
    program.stopped = true;
    return 0;
  }

  private double resume(Random random) throws InterruptedException {
    if (those(true).isEmpty()) {
      return stopBriefly(random);
    }
    Program program = pick(those(true), random);
    last += " " + program;
    program.child.signal("CONT");
    program.stopped = false;
    program.excused = true;
    return 0;
  }

  private double killStopped(Random random) throws InterruptedException {
    if (those(true).isEmpty()) {
      return killStarting(random, 1);
    }
    Program program = pick(those(true), random);
    last += " " + program;
    world.kill(program);
    return 0;
  }

  private double stopBriefly(Random random) throws InterruptedException {
    if (those(false).isEmpty()) {
      return start(random);
    }
    Program program = pick(those(false), random);
    last += " " + program;
    program.child.signal("STOP");
    NanoClock.sleepMillis(random.nextLong(LONGEST_STOP_MS));
    program.child.signal("CONT");
    program.excused = true;
    return 0;
  }

  /** Kills the seat's holder; programs start while the seat is vacant. */
  private double seatKilled(Random random) throws InterruptedException {
    last += " pid " + world.seats.holder().child().pid();
    world.killSeat();
    if (random.nextBoolean() && world.programs.size() < MOST_PROGRAMS) {
      Tenant held = world.tenants.get(random.nextInt(world.tenants.size() - 1));
      startReady(held, random.nextLong() >>> 1, 2, false);
    }
    world.seats.awaitHolder();
    world.seats.fillUp();
    return SEAT_GONE_MS;
  }

  private double seatStopped(Random random) throws InterruptedException {
    Child holder = world.seats.holder().child();
    long ms = 20 + random.nextLong(LONGEST_SEAT_STOP_MS);
    last += " pid " + holder.pid() + " for " + ms + " ms";
    holder.signal("STOP");
    NanoClock.sleepMillis(ms);
    holder.signal("CONT");
    return ms;
  }

  private double clock(Random random) {
    long seconds = random.nextLong(2 * LARGEST_CLOCK_STEP_S) - LARGEST_CLOCK_STEP_S;
    last += " by " + seconds + " s";
    world.clock.step(random.nextInt(4) == 0 ? 0 : seconds);
    return 0;
  }

  /**
   * With a full disk, running programs go on; a new program may be refused, and says so. Afterwards
   * all is as before.
   */
  private double fullDisk(Random random) throws InterruptedException {
    if (!world.disk.isPossible()) {
      return start(random);
    }
    Tenant tenant = world.tenants.get(random.nextInt(world.tenants.size() - 1));
    last += " under " + tenant.name;
    long seed = random.nextLong() >>> 1;
    boolean seatToo = random.nextInt(4) == 0;
    world.seats.awaitHolder();
    world.disk.fill();
    try {
      refuseOnFullDisk();
      startOnFullDisk(world.start(tenant, seed, 2, false));
      if (seatToo) {
        world.killSeat();
        world.seats.awaitHolder();
      }
      NanoClock.sleepMillis(random.nextLong(LONGEST_STOP_MS));
    } finally {
      world.disk.free();
    }
    world.seats.fillUp();
    return seatToo ? SEAT_GONE_MS : 0;
  }

  private void refuseOnFullDisk() throws InterruptedException {
    Tenant late = brief();
    try {
      late.acquire(world.seats.any());
      late.release();
    } catch (IllegalStateException e) {
      if (!String.valueOf(e.getMessage()).contains("No space left")) {
        throw e;
      }
    }
  }

  private void startOnFullDisk(Program program) throws InterruptedException {
    String answer = program.child.line();
    if (answer.equals("ready")) {
      world.programs.add(program);
    } else if (!answer.startsWith("error ")) {
      throw new ChaosFailure(program + " on a full disk: " + answer);
    }
  }

  private static Tenant brief() {
    MemorySize quota = MemorySize.ofMebibytes(256);
    return new Tenant("brief", SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE, quota);
  }

  /** Releases a lease while programs work under it: they get an error, and delay no other. */
  private double leaseEnds(Random random) throws InterruptedException {
    Tenant tenant = brief();
    world.seats.awaitHolder();
    tenant.acquire(world.seats.any());
    if (random.nextInt(3) == 0) {
      return oneOfSeveralEnds(tenant, random);
    }
    Program program = world.start(tenant, random.nextLong() >>> 1, 2, true);
    if (random.nextBoolean()) {
      startOf(program);
      NanoClock.sleepMillis(random.nextLong(LONGEST_STOP_MS));
    } else {
      NanoClock.sleepMicros(random.nextInt(LONGEST_START_US));
    }
    tenant.release();
    NanoClock.sleepMillis(random.nextLong(LONGEST_STOP_MS));
    if (program.child.isAlive()) {
      program.child.kill();
    }
    return 0;
  }

  /** Ends one lease of a process that goes on under its others. */
  private double oneOfSeveralEnds(Tenant ending, Random random) throws InterruptedException {
    Tenant home = world.tenants.get(random.nextInt(world.tenants.size() - 1));
    List<Tenant> others = List.of(ending, world.companions().get(1));
    last += " beside " + home.name;
    Program program = world.start(home, others, random.nextLong() >>> 1, 2, true);
    boolean ready = startOf(program).equals("ready");
    NanoClock.sleepMillis(random.nextLong(LONGEST_STOP_MS));
    ending.release();
    NanoClock.sleepMillis(random.nextLong(LONGEST_STOP_MS));
    if (ready && program.child.ask("read").whole("error") != 0) {
      throw new ChaosFailure(program + " does not outlive one of its leases");
    }
    program.child.kill();
    return 0;
  }
}
