package dev.vgpu.bench.chaos;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.bench.chaos.Auditor.Audit;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.NanoClock;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;

/** What must hold after each step. Confined to one thread. */
public final class Checks {
  /** How long the dead may take to be gone from all accounts, above what the machine is late by. */
  private static final double SETTLE_MS = 1_000;

  private static final long PROGRESS_NS = 20_000_000_000L;
  private static final List<String> DEEDS = List.of("entered", "taken", "forked");

  /** Half of the alarm of a forked process (chaos_work.c). */
  private static final double FORK_EXCUSED_MS = 10_000;

  /** Within this a forked process has run until its alarm, and was seen to have ended. */
  private static final long FORK_SEEN_NS = 60_000_000_000L;

  private static final double KERNEL_NS = 1e6;
  private static final long SHARE_WINDOW_MS = 1_000;

  /** What was lost before is paid back in the first of them. */
  private static final int SHARE_TRIES = 2;

  private static final double LEAST_OF_SHARE = 0.7;
  private static final double MOST_OF_FIXED = 1.25;

  private final World world;
  private final Stalls stalls = new Stalls();
  private long stallsLookedNs = NanoClock.nanoTime();
  private double seatGoneMs;
  private final Map<String, Map<Long, Long>> did = new TreeMap<>();
  private double worstSettleMs;

  Checks(World world) {
    this.world = world;
  }

  double worstSettleMs() {
    return worstSettleMs;
  }

  /** How many stalls of a GPU were put down to a seat that was late, and the last one. */
  String excusedStalls() {
    return stalls.excused();
  }

  /** How often the programs have done each of the things that a run may lack by chance. */
  Map<String, Long> did() {
    Map<String, Long> sums = new TreeMap<>();
    did.forEach((what, byPid) -> sums.put(what, sum(byPid)));
    return sums;
  }

  private static long sum(Map<Long, Long> byPid) {
    return byPid.values().stream().mapToLong(Long::longValue).sum();
  }

  /** After each step: nobody hangs, fails or waits too long, and nobody is over its quota. */
  void always(double extraMs) throws InterruptedException {
    world.waits.begin(extraMs);
    for (Program witness : world.witnesses) {
      checkWitness(witness);
    }
    for (Program program : List.copyOf(world.programs)) {
      if (!program.stopped) {
        checkProgram(program, ask(program, "read"));
      }
    }
    checkQuotas(world.auditor.read());
    checkStalls(extraMs);
  }

  /** What was done to a seat in a step may also show in the next. */
  private void checkStalls(double extraMs) throws InterruptedException {
    long nowNs = NanoClock.nanoTime();
    double lateMs = extraMs + seatGoneMs + world.waits.seatLateMs(stallsLookedNs);
    stalls.look(world.node.errors(), lateMs);
    stallsLookedNs = nowNs;
    seatGoneMs = extraMs;
  }

  private static Answer ask(Program program, String what) throws InterruptedException {
    try {
      return program.child.ask(what);
    } catch (IllegalStateException e) {
      String end = program.child.isAlive() ? "" : " exit code " + program.child.awaitEnd();
      throw new ChaosFailure(program + " failed: " + e.getMessage() + end);
    }
  }

  /** Lets all its threads end what they do; each call of theirs comes back. */
  private Answer rest(Program program) throws InterruptedException {
    Patience patience = world.patience(program.child::pid);
    Answer answer = ask(program, "rest");
    while (answer.whole("idle") != answer.whole("threads")) {
      if (patience.isOver(PROGRESS_NS)) {
        throw new ChaosFailure(program + " does not come to rest: " + answer.line());
      }
      answer = ask(program, "rest");
    }
    return answer;
  }

  private Answer awaitProgress(Program witness) throws InterruptedException {
    Patience patience = world.patience(witness.child::pid);
    Answer answer = ask(witness, "read");
    while (answer.whole("kernels") <= witness.kernels) {
      if (patience.isOver(PROGRESS_NS)) {
        throw new ChaosFailure(witness + " hangs: " + answer.line());
      }
      NanoClock.sleepMillis(5);
      answer = ask(witness, "read");
    }
    return answer;
  }

  private void checkWitness(Program witness) throws InterruptedException {
    Answer answer = ask(witness, "read");
    if (answer.whole("kernels") <= witness.kernels) {
      answer = awaitProgress(witness);
    }
    witness.kernels = answer.whole("kernels");
    if (answer.whole("error") != 0) {
      throw new ChaosFailure(witness + ": a call failed: " + answer.line());
    }
    if (!witness.excused) {
      world.waits.checkWitness(witness, answer);
    }
    witness.excused = false;
  }

  private void checkProgram(Program program, Answer answer) throws InterruptedException {
    if (answer.whole("error") != 0) {
      throw new ChaosFailure(
          program + ": the driver answered what it never does: " + answer.line());
    }
    checkForked(program, answer);
    for (String what : DEEDS) {
      long times = answer.whole(what);
      did.computeIfAbsent(what, unused -> new HashMap<>()).put(program.child.pid(), times);
    }
    if (!program.excused) {
      world.waits.check(program, answer);
    }
    program.excused = false;
  }

  /** Forked processes end themselves by an alarm, which says nothing if the machine stood still. */
  private void checkForked(Program program, Answer answer) throws InterruptedException {
    long hung = answer.whole("forked_hung");
    if (hung > program.forkedHung) {
      double lateMs = world.machine.lateMs(NanoClock.nanoTime() - FORK_SEEN_NS);
      world.waits.note("machine_late_for_a_forked_process", lateMs);
      if (lateMs < FORK_EXCUSED_MS) {
        throw new ChaosFailure(program + ": a forked process hung: " + answer.line());
      }
    }
    program.forkedHung = hung;
  }

  private static void checkQuotas(Audit audit) {
    if (audit.overBytes() > 0) {
      throw new ChaosFailure(
          "over its quota by " + audit.overBytes() + " bytes: lease " + audit.overLease());
    }
    for (Auditor.Lease lease : audit.leases()) {
      if (lease.ledger() > lease.quota()) {
        throw new ChaosFailure("a ledger is over its quota: " + lease);
      }
    }
  }

  /** With all programs at rest, the GPU's accounts, the ledgers and the seat's say the same. */
  void books() throws InterruptedException {
    Map<Holding, Long> held = new HashMap<>();
    List<Program> resting = world.programs.stream().filter(program -> !program.stopped).toList();
    for (Program program : resting) {
      Answer answer = rest(program);
      checkProgram(program, answer);
      note(held, program, answer);
    }
    long beginNs = NanoClock.nanoTime();
    Optional<String> wrong = firstWrong(held);
    while (wrong.isPresent()) {
      double ms = (NanoClock.nanoTime() - beginNs) / 1e6;
      if (ms > SETTLE_MS && ms > SETTLE_MS + world.waits.lostMs(beginNs)) {
        throw new ChaosFailure("the books differ after " + Math.round(ms) + " ms: " + wrong.get());
      }
      NanoClock.sleepMillis(2);
      wrong = firstWrong(held);
    }
    worstSettleMs = Math.max(worstSettleMs, (NanoClock.nanoTime() - beginNs) / 1e6);
    for (Program program : resting) {
      ask(program, "go");
    }
  }

  /** What a process says that it has allocated under a lease. */
  private record Holding(long pid, String lease) {}

  private static void note(Map<Holding, Long> held, Program program, Answer answer) {
    long pid = program.child.pid();
    held.put(new Holding(pid, program.lease), answer.whole("bytes"));
    if (!program.furtherLeases.isEmpty()) {
      held.put(new Holding(pid, program.furtherLeases.get(0)), answer.whole("bytes_stays"));
      held.put(new Holding(pid, program.furtherLeases.get(1)), answer.whole("bytes_guest"));
    }
  }

  private Optional<String> firstWrong(Map<Holding, Long> held) throws InterruptedException {
    Audit audit = world.auditor.read();
    checkQuotas(audit);
    JsonNode told = world.seats.any().leases();
    return audit.leases().stream()
        .flatMap(lease -> Stream.concat(wrongIn(lease, audit, held), wrongTold(lease, told)))
        .findFirst();
  }

  private Stream<String> wrongIn(Auditor.Lease lease, Audit audit, Map<Holding, Long> held) {
    if (lease.ledger() != lease.slotSum()) {
      return Stream.of("the ledger is not the sum of its processes: " + lease);
    }
    return lease.processes().stream()
        .filter(
            process ->
                Audit.slots(lease, process.pid()) > 1
                    || !agrees(process, audit, held.getOrDefault(key(process, lease), 0L)))
        .map(process -> "a process's books differ: " + process + " held=" + held + " in " + lease);
  }

  private static Holding key(Auditor.Holder process, Auditor.Lease lease) {
    return new Holding(process.pid(), lease.id());
  }

  /** A stopped one may stand between reserving and allocating, or be charged and not begun. */
  private boolean agrees(Auditor.Holder process, Audit audit, long counted) {
    if (!process.alive()) {
      return process.slotBytes() <= 0 && process.truthBytes() <= 0;
    }
    boolean stopped =
        world.programs.stream()
            .anyMatch(program -> program.stopped && program.child.pid() == process.pid());
    long truth = Math.max(0, process.truthBytes());
    long charged = audit.slotBytes(process.pid());
    return stopped
        ? truth <= charged
        : truth == charged && counted <= Math.max(0, process.slotBytes());
  }

  private static Stream<String> wrongTold(Auditor.Lease lease, JsonNode told) {
    for (JsonNode each : told) {
      if (each.path("id").asText().equals(lease.id())) {
        boolean same = each.path("memory").asLong() == lease.ledger();
        return same ? Stream.empty() : Stream.of("the seat tells " + each + " of " + lease);
      }
    }
    return Stream.of("the seat does not know " + lease);
  }

  /** With nothing but the witnesses at work, each gets what its share entitles it to. */
  void shares() throws InterruptedException {
    List<Program> paused = world.programs.stream().filter(program -> !program.stopped).toList();
    for (Program program : paused) {
      rest(program);
    }
    String wrong = wrongShare();
    for (int i = 1; i < SHARE_TRIES && !wrong.isEmpty(); i++) {
      wrong = wrongShare();
    }
    if (!wrong.isEmpty()) {
      throw new ChaosFailure("a share did not come back: " + wrong);
    }
    for (Program program : paused) {
      ask(program, "go");
    }
  }

  private String wrongShare() throws InterruptedException {
    Map<Program, Long> before = new HashMap<>();
    long beginNs = NanoClock.nanoTime();
    for (Program witness : world.witnesses) {
      before.put(witness, ask(witness, "read").whole("kernels"));
    }
    NanoClock.sleepMillis(SHARE_WINDOW_MS);
    StringBuilder wrong = new StringBuilder();
    for (Program witness : world.witnesses) {
      long kernels = ask(witness, "read").whole("kernels") - before.getOrDefault(witness, 0L);
      double passedNs = NanoClock.nanoTime() - beginNs;
      double percent = kernels * KERNEL_NS / passedNs * 100;
      // In what the machine lost of all processes' time this one may have got nothing, or too much.
      double latePercent = world.waits.lostMs(beginNs) * 1e6 / passedNs * 100;
      boolean fixed = witness.tenant.name.equals("fixed");
      if (percent < witness.tenant.percent * LEAST_OF_SHARE - latePercent
          || (fixed && percent > witness.tenant.percent * MOST_OF_FIXED + latePercent)) {
        wrong.append(witness).append(" got ").append(Math.round(percent)).append(" %, has ");
        wrong.append(witness.tenant.percent).append(" %, late ").append(Math.round(latePercent));
        wrong.append(" %; ");
      }
    }
    return wrong.toString();
  }
}
