package dev.vgpu.core.reclaim;

import static dev.vgpu.core.reclaim.VirtualMemory.MS;
import static dev.vgpu.core.reclaim.VirtualMemory.S;
import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.vgpu.GpuSettings;
import dev.vgpu.core.reclaim.ReclaimAction.Ask;
import dev.vgpu.core.reclaim.ReclaimAction.End;
import dev.vgpu.core.reclaim.ReclaimAction.HoldBack;
import dev.vgpu.core.reclaim.ReclaimAction.LetBack;
import dev.vgpu.core.reclaim.ReclaimAction.Resume;
import dev.vgpu.core.reclaim.ReclaimAction.Suspend;
import dev.vgpu.core.reclaim.VirtualMemory.Done;
import dev.vgpu.core.reclaim.VirtualMemory.Manner;
import dev.vgpu.core.reclaim.VirtualMemory.Virtual;
import dev.vgpu.request.MemorySize;
import java.util.List;
import org.junit.jupiter.api.Test;

class ReclaimPlannerTest {
  static final ReclaimSettings SETTINGS =
      new ReclaimSettings(1_000, 50, 100, S, 2 * S, 5 * S, 5 * S, 10 * S);

  private final VirtualMemory memory = new VirtualMemory(SETTINGS);

  private long at(int index) {
    return memory.done.get(index).atNs();
  }

  private List<Class<?>> kinds() {
    return memory.done.stream().<Class<?>>map(done -> done.action().getClass()).toList();
  }

  @Test
  void nothingIsDoneAboveTheLowWatermark() {
    memory.add("online", ONLINE, Manner.UNTOUCHABLE, 500, 0);
    memory.add("batch", OFFLINE, Manner.SUSPENDABLE, 450, 0);
    memory.run(60 * S);
    assertThat(memory.done).isEmpty();
  }

  @Test
  void ownerThatYieldsIsOnlyAsked() {
    memory.add("online", ONLINE, Manner.UNTOUCHABLE, 500, 0);
    Virtual batch = memory.add("batch", OFFLINE, Manner.YIELDS, 460, 0);
    memory.run(60 * S);
    assertThat(kinds()).containsExactly(Ask.class);
    assertThat(((Ask) memory.done.get(0).action()).wantedBytes()).isEqualTo(60);
    assertThat(batch.bytes).isEqualTo(230);
  }

  @Test
  void ownerThatDoesNotAnswerIsWaitedForUntilTheDeadline() {
    memory.add("online", ONLINE, Manner.UNTOUCHABLE, 500, 0);
    memory.add("deaf", OFFLINE, Manner.IGNORES_ASKING, 200, 9);
    memory.add("batch", OFFLINE, Manner.SUSPENDABLE, 260, 5);
    memory.run(60 * S);
    assertThat(kinds()).startsWith(Ask.class, Suspend.class, HoldBack.class);
    assertThat(at(1) - at(0)).isEqualTo(2 * S);
    assertThat(memory.order(End.class)).isEmpty();
  }

  @Test
  void victimThatResistsIsEndedAndThenKilled() {
    memory.add("online", ONLINE, Manner.UNTOUCHABLE, 500, 0);
    memory.add("stubborn", OFFLINE, Manner.HANGS_IN_SUSPENSION, 460, 0);
    memory.run(5 * S);
    assertThat(kinds()).containsExactly(Suspend.class, HoldBack.class);
    memory.run(S);
    End end = (End) memory.done.get(2).action();
    assertThat(at(2) - at(0)).isEqualTo(5 * S);
    assertThat(end.kill()).isFalse();
    assertThat(end.reason())
        .contains("below the low watermark", "offline", "could not be suspended: not within 5000");
  }

  @Test
  void programThatIgnoresSigtermIsKilledAtTheDeadline() {
    memory.add("online", ONLINE, Manner.UNTOUCHABLE, 500, 0);
    memory.add("stubborn", OFFLINE, Manner.IGNORES_SIGTERM, 460, 0);
    memory.run(6 * S);
    assertThat(kinds()).containsExactly(End.class, HoldBack.class, End.class);
    assertThat(((End) memory.done.get(2).action()).kill()).isTrue();
    assertThat(at(2) - at(0)).isEqualTo(5 * S);
  }

  @Test
  void offlineIsEndedBeforeNearlineIsTouched() {
    memory.add("online", ONLINE, Manner.UNTOUCHABLE, 400, 0);
    memory.add("near", NEARLINE, Manner.SUSPENDABLE, 300, 0);
    memory.add("off", OFFLINE, Manner.ENDS, 280, 100 * S);
    memory.run(5 * S);
    assertThat(memory.order(End.class)).containsExactly("off");
    assertThat(memory.order(Suspend.class)).isEmpty();
    memory.tenants.get("online").bytes = 660;
    memory.run(5 * S);
    assertThat(memory.order(Suspend.class)).containsExactly("near");
  }

  @Test
  void leastWorkLostGoesFirstThenTheLargest() {
    memory.add("online", ONLINE, Manner.UNTOUCHABLE, 500, 0);
    memory.add("long", OFFLINE, Manner.SUSPENDABLE, 300, 90 * S);
    memory.add("small", OFFLINE, Manner.SUSPENDABLE, 40, 5 * S);
    memory.add("large", OFFLINE, Manner.SUSPENDABLE, 45, 5 * S);
    memory.add("new", OFFLINE, Manner.SUSPENDABLE, 80, S);
    memory.run(S);
    assertThat(memory.order(Suspend.class)).containsExactly("new");
    memory.tenants.get("online").bytes = 650;
    memory.run(S);
    assertThat(memory.order(Suspend.class)).containsExactly("new", "large", "small", "long");
  }

  @Test
  void suspendedTenantComesBackWhenTheHighWatermarkHasHeldAndItFits() {
    Virtual online = memory.add("online", ONLINE, Manner.UNTOUCHABLE, 500, 0);
    Virtual batch = memory.add("batch", OFFLINE, Manner.SUSPENDABLE, 460, 0);
    memory.run(30 * S);
    assertThat(batch.suspended).isTrue(); // 500 are free, but it needs 460, and 100 must stay free
    online.bytes = 400;
    memory.run(S);
    assertThat(batch.suspended).isFalse();
    assertThat(memory.order(Suspend.class)).hasSize(1);
    memory.run(60 * S);
    assertThat(memory.order(Suspend.class)).hasSize(1);
  }

  @Test
  void tenantThatFillsTheGpuComesBackWhenItIsEmpty() {
    Virtual batch = memory.add("batch", OFFLINE, Manner.SUSPENDABLE, 980, 0);
    memory.run(S);
    assertThat(batch.suspended).isTrue();
    memory.run(11 * S);
    assertThat(memory.order(Resume.class)).containsExactly("batch");
  }

  @Test
  void respawnedVictimIsKilledUntilItIsLetBack() {
    memory.add("online", ONLINE, Manner.UNTOUCHABLE, 500, 0);
    Virtual zombie = memory.add("zombie", OFFLINE, Manner.RESPAWNS, 460, 0);
    memory.run(2 * S);
    assertThat(memory.order(End.class)).hasSizeGreaterThan(3);
    zombie.respawnBytes = 200; // fits
    memory.run(5 * S);
    assertThat(memory.heldBack).containsExactly("zombie");
    int ends = memory.order(End.class).size();
    memory.run(5 * S);
    assertThat(memory.order(End.class)).hasSizeGreaterThan(ends);
    zombie.respawnBytes = 0; // it is not restarted any more
    memory.run(12 * S);
    assertThat(memory.heldBack).isEmpty();
    assertThat(memory.done.stream().map(Done::action)).contains(new LetBack("zombie"));
  }

  @Test
  void steadyGrowthIsMetBeforeTheWatermark() {
    Virtual online = memory.add("online", ONLINE, Manner.UNTOUCHABLE, 300, 0);
    memory.add("batch", OFFLINE, Manner.SUSPENDABLE, 300, 0);
    while (memory.done.isEmpty()) {
      online.bytes += 10; // 100 per second
      memory.run(VirtualMemory.STEP_NS);
    }
    Done first = memory.done.get(0);
    assertThat(first.action()).isInstanceOf(Suspend.class);
    assertThat(first.freeBytes()).isBetween(140L, 160L);
    assertThat(((Suspend) first.action()).reason()).contains("will soon be below");
  }

  @Test
  void oneJumpIsNoGrowth() {
    Virtual online = memory.add("online", ONLINE, Manner.UNTOUCHABLE, 300, 0);
    memory.add("batch", OFFLINE, Manner.SUSPENDABLE, 300, 0);
    memory.run(5 * S);
    online.bytes = 600;
    memory.run(5 * S);
    assertThat(memory.done).isEmpty();
  }

  @Test
  void onlineAloneIsLeftAlone() {
    memory.add("online", ONLINE, Manner.SUSPENDABLE, 999, 0);
    memory.run(60 * S);
    assertThat(memory.done).isEmpty();
  }

  @Test
  void zeroTimesSkipTheirSteps() {
    VirtualMemory curt = new VirtualMemory(new ReclaimSettings(1_000, 50, 100, 0, 0, 0, 0, 10 * S));
    curt.add("yields", OFFLINE, Manner.YIELDS, 960, 0);
    List<ReclaimAction> actions = curt.step();
    assertThat(actions).hasSize(2);
    assertThat(actions.get(0))
        .isInstanceOfSatisfying(End.class, end -> assertThat(end.kill()).isTrue());
  }

  @Test
  void settingsComeFromTheGpus() {
    GpuSettings gpu = GpuSettings.builder().memoryWatermarks(5, 10).build();
    ReclaimSettings settings = ReclaimSettings.from(gpu, MemorySize.ofBytes(1_000));
    assertThat(settings).isEqualTo(SETTINGS);
    assertThat(settings.isOn()).isTrue();
    assertThat(ReclaimSettings.from(GpuSettings.defaults(), MemorySize.ofBytes(5)).isOn())
        .isFalse();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new ReclaimSettings(1_000, 200, 100, S, S, S, S, 10 * MS))
        .withMessageContaining("lowBytes=200 highBytes=100");
  }
}
