package dev.vgpu.core.reclaim;

import static dev.vgpu.core.reclaim.VirtualMemory.S;
import static dev.vgpu.core.reclaim.VirtualMemory.STEP_NS;
import static dev.vgpu.core.reclaim.VirtualMemory.idOf;
import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.core.reclaim.ReclaimAction.Ask;
import dev.vgpu.core.reclaim.ReclaimAction.End;
import dev.vgpu.core.reclaim.ReclaimAction.HoldBack;
import dev.vgpu.core.reclaim.ReclaimAction.LetBack;
import dev.vgpu.core.reclaim.ReclaimAction.Resume;
import dev.vgpu.core.reclaim.ReclaimAction.Suspend;
import dev.vgpu.core.reclaim.VirtualMemory.Done;
import dev.vgpu.core.reclaim.VirtualMemory.Manner;
import dev.vgpu.core.reclaim.VirtualMemory.Virtual;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;

/** Any mix of tenants, with any behaviour, whose memory use varies at random. */
@Tag("property")
class ReclaimPlannerProperties {
  private static final int TRIES = 200;
  private static final List<Manner> MANNERS = List.of(Manner.values());

  /** Plays a random history; calls {@code look} after each step. */
  private static VirtualMemory play(long seed, long forecastNs, Consumer<VirtualMemory> look) {
    Random random = new Random(seed);
    long low = 10L + random.nextInt(200);
    ReclaimSettings settings =
        new ReclaimSettings(
            1_000,
            low,
            low + random.nextInt(200),
            forecastNs,
            random.nextInt(4) * S,
            random.nextInt(4) * S,
            random.nextInt(4) * S,
            (1 + random.nextInt(10)) * S);
    VirtualMemory memory = new VirtualMemory(settings);
    memory.add("online", ONLINE, Manner.SUSPENDABLE, 100, 0);
    for (int i = 0; i < 1 + random.nextInt(6); i++) {
      Manner manner = MANNERS.get(random.nextInt(MANNERS.size()));
      long bytes = random.nextInt((int) Math.max(1, memory.free()));
      memory.add(
          "t" + i, random.nextBoolean() ? OFFLINE : NEARLINE, manner, bytes, random.nextInt(3) * S);
    }
    for (int phase = 0; phase < 8; phase++) {
      Virtual grows =
          List.copyOf(memory.tenants.values()).get(random.nextInt(memory.tenants.size()));
      long by = random.nextInt(400) - 200L;
      int steps = 1 + random.nextInt(100);
      for (int i = 0; i < steps; i++) {
        if (!grows.suspended) {
          long room = Math.min(by * (i + 1) / steps - by * i / steps, memory.free());
          grows.bytes = Math.max(0, grows.bytes + room);
        }
        List<ReclaimAction> ignored = memory.step();
        look.accept(memory);
      }
    }
    return memory;
  }

  @Property(tries = TRIES)
  void onlineIsNeverTouched(@ForAll long seed) {
    VirtualMemory memory = play(seed, S, ignored -> {});
    assertThat(memory.done).noneMatch(done -> idOf(done.action()).equals("online"));
    assertThat(memory.tenants.get("online").suspended).isFalse();
  }

  @Property(tries = TRIES)
  void everyStepOfTheLadderHasItsTimeAndItsOrder(@ForAll long seed) {
    VirtualMemory memory = play(seed, S, ignored -> {});
    Map<String, Long> asked = new HashMap<>();
    Map<String, Long> suspending = new HashMap<>();
    Map<String, Long> ending = new HashMap<>();
    for (Done done : memory.done) {
      String id = idOf(done.action());
      Virtual tenant = memory.tenants.get(id);
      if (done.action() instanceof Ask) {
        asked.put(id, done.atNs());
      } else if (done.action() instanceof Suspend) {
        suspending.put(id, done.atNs());
        if (tenant.manner == Manner.IGNORES_ASKING && memory.settings.askNs() > 0) {
          assertThat(done.atNs() - asked.get(id)).isGreaterThanOrEqualTo(memory.settings.askNs());
        }
      } else if (done.action() instanceof End end && !end.reason().contains("started again")) {
        if (end.kill() && ending.containsKey(id)) {
          assertThat(done.atNs() - ending.remove(id))
              .isGreaterThanOrEqualTo(memory.settings.endNs());
        } else {
          ending.put(id, done.atNs());
          assertThat(end.kill()).isEqualTo(memory.settings.endNs() == 0);
        }
        boolean couldBeSuspended =
            tenant.manner == Manner.RESISTS || tenant.manner == Manner.HANGS_IN_SUSPENSION;
        if (couldBeSuspended && memory.settings.suspendNs() > 0) {
          assertThat(suspending).containsKey(id);
        }
        boolean suspendable = tenant.manner == Manner.SUSPENDABLE;
        assertThat(suspendable && memory.settings.suspendNs() > 0)
            .as("gentler was possible")
            .isFalse();
      }
    }
  }

  @Property(tries = TRIES)
  void nothingIsTakenWhileTheHighWatermarkIsFree(@ForAll long seed) {
    VirtualMemory memory = play(seed, 0, ignored -> {});
    assertThat(memory.done)
        .filteredOn(
            done ->
                done.action() instanceof Ask
                    || done.action() instanceof Suspend
                    || (done.action() instanceof End end
                        && !end.reason().contains("started again")))
        .allSatisfy(done -> assertThat(done.freeBytes()).isLessThan(memory.settings.highBytes()));
  }

  @Property(tries = TRIES)
  void nearlineIsTouchedOnlyWhenNoOfflineMemoryIsLeftToTake(@ForAll long seed) {
    int[] looked = {0};
    VirtualMemory ignored =
        play(
            seed,
            0,
            memory -> {
              for (Done done : memory.done.subList(looked[0], memory.done.size())) {
                Virtual victim = memory.tenants.get(idOf(done.action()));
                if (victim != null
                    && victim.preemptionClass == NEARLINE
                    && !(done.action() instanceof Resume)
                    && !(done.action() instanceof End end && end.reason().contains("again"))) {
                  assertThat(memory.tenants.values())
                      .filteredOn(each -> each.preemptionClass == OFFLINE && !each.suspended)
                      .filteredOn(each -> each.manner != Manner.RESPAWNS && each.bytes > 0)
                      .allMatch(each -> each.manner == Manner.UNTOUCHABLE);
                }
              }
              looked[0] = memory.done.size();
            });
  }

  @Property(tries = TRIES)
  void nobodyComesAndGoesFasterThanTheHoldBackTime(@ForAll long seed) {
    VirtualMemory memory = play(seed, S, ignored -> {});
    Map<String, Long> suspended = new HashMap<>();
    Map<String, Long> held = new HashMap<>();
    for (Done done : memory.done) {
      if (done.action() instanceof Suspend suspend) {
        suspended.put(suspend.id(), done.atNs());
      } else if (done.action() instanceof Resume resume) {
        assertThat(done.atNs() - suspended.get(resume.id()))
            .isGreaterThanOrEqualTo(memory.settings.holdBackNs());
        assertThat(done.freeBytes()).isGreaterThanOrEqualTo(memory.settings.highBytes());
      } else if (done.action() instanceof HoldBack hold) {
        held.put(hold.name(), done.atNs());
      } else if (done.action() instanceof LetBack let) {
        assertThat(done.atNs() - held.get(let.name()))
            .isGreaterThanOrEqualTo(memory.settings.holdBackNs());
      }
    }
  }

  @Property(tries = TRIES)
  void memoryIsFreedUnlessNothingIsLeftToTake(@ForAll long seed) {
    VirtualMemory memory = play(seed, S, ignored -> {});
    memory.tenants.values().stream()
        .filter(tenant -> tenant.manner == Manner.RESPAWNS)
        .forEach(tenant -> tenant.respawnBytes = 0);
    int most = memory.tenants.size();
    ReclaimSettings settings = memory.settings;
    long longestNs =
        most * (settings.suspendNs() + settings.endNs() + ReclaimPlanner.GONE_NS + 4 * STEP_NS)
            + 2 * settings.askNs()
            + 2 * S;
    memory.run(longestNs);
    boolean stuck =
        memory.tenants.values().stream()
            .filter(tenant -> tenant.preemptionClass != ONLINE && !tenant.suspended)
            .allMatch(tenant -> tenant.bytes == 0 || tenant.manner == Manner.UNTOUCHABLE);
    assertThat(memory.free() >= settings.lowBytes() || stuck).isTrue();
  }

  @Property(tries = 50)
  void theSameEventsGiveTheSameActions(@ForAll long seed) {
    assertThat(play(seed, S, ignored -> {}).done).isEqualTo(play(seed, S, ignored -> {}).done);
  }
}
