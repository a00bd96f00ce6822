package dev.vgpu.core.schedule;

import static dev.vgpu.core.simulate.VirtualNode.MS;
import static dev.vgpu.core.simulate.VirtualNode.S;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.core.schedule.Mixes.Busy;
import dev.vgpu.core.simulate.GateModel;
import dev.vgpu.core.simulate.VirtualGate;
import dev.vgpu.core.simulate.VirtualNode;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;

/** How far tenants that always have work are from what an ideal division gives them. */
@Tag("property")
class ShareAccuracyProperties {
  /** Fixed, so that every build tries the same; take it out to try others. */
  private static final String SEED = "2026112041";

  @Provide
  Arbitrary<List<Busy>> mixes() {
    return Mixes.ofOneLevel();
  }

  /** Calls of this JVM, or processes under the hook, each with what that costs. */
  @Provide
  Arbitrary<GateModel> models() {
    return Arbitraries.of(GateModel.ideal(-1), GateModel.calls(-1), GateModel.processes());
  }

  @Property(seed = SEED, tries = 30)
  void everySecondIsWithinOnePointOfIdeal(@ForAll("mixes") List<Busy> mix) {
    VirtualNode node = Mixes.start(mix, GateModel.calls(-1), VirtualNode.settings(0));
    assertThat(Mixes.worstSecond(node, mix, 4)).isLessThanOrEqualTo(1.0);
  }

  /** Up to four milliseconds of work are on their way to the GPU when a process loses its turn. */
  @Property(seed = SEED, tries = 30)
  void everySecondOfProcessesIsWithinOnePoint(@ForAll("mixes") List<Busy> mix) {
    VirtualNode node = Mixes.start(mix, GateModel.processes(), VirtualNode.settings(0));
    assertThat(Mixes.worstSecond(node, mix, 4)).isLessThanOrEqualTo(1.0);
  }

  @Property(seed = SEED, tries = 12)
  void longRunIsWithinATenthOfAPoint(
      @ForAll("mixes") List<Busy> mix, @ForAll("models") GateModel model) {
    VirtualNode node = Mixes.start(mix, model, VirtualNode.settings(0));
    node.runUntil(40 * S);
    double[] entitled = Mixes.entitled(mix);
    boolean takers = mix.stream().anyMatch(b -> b.policy() != SharePolicy.FIXED_SHARE);
    double all = node.gates().stream().mapToLong(VirtualGate::servedNs).sum();
    for (int i = 0; i < entitled.length; i++) {
      double part = node.gate(i).servedNs() / (takers ? all : node.nowNs());
      assertThat(100 * part)
          .as("tenant %d of %s", i, mix)
          .isBetween(100 * entitled[i] - 0.1, 100 * entitled[i] + 0.1);
    }
  }

  /** Turns overlap, and each says then that it used the time of both. */
  @Property(seed = SEED, tries = 30)
  void whatIsBookedIsWhatTheDeviceDid(@ForAll("mixes") List<Busy> mix) {
    VirtualNode node = Mixes.start(mix, GateModel.processes(), VirtualNode.settings(0));
    node.runUntil(10 * S);
    for (int i = 0; i < mix.size(); i++) {
      double offNs = node.tenants().get(i).bookedNs - node.gate(i).servedNs();
      assertThat(offNs / node.nowNs()).as("tenant %d of %s", i, mix).isBetween(-0.005, 0.005);
    }
  }

  @Property(seed = SEED, tries = 40)
  void lagIsBounded(@ForAll("mixes") List<Busy> mix) {
    SchedulerSettings settings = VirtualNode.settings(0);
    VirtualNode node = Mixes.start(mix, GateModel.ideal(-1), settings);
    long longest = mix.stream().mapToLong(Busy::kernelNs).max().orElseThrow();
    double turnNs = settings.shortestTurnNs() + longest;
    boolean capped = mix.stream().allMatch(b -> b.policy() == SharePolicy.FIXED_SHARE);
    for (long atNs = 0; atNs < 3 * S; atNs += 3 * MS) {
      node.runUntil(atNs);
      double sum = 0;
      for (Tenant tenant : node.tenants()) {
        double lagNs = node.scheduler().lagNs(tenant);
        sum += lagNs;
        // Ahead by no more than one turn of its own; behind by no more than one of another's, and
        // those of the others that are due before.
        assertThat(lagNs).isGreaterThanOrEqualTo(-turnNs - 1e3);
        assertThat(lagNs).isLessThanOrEqualTo(2 * turnNs + 1e3);
      }
      if (!capped) {
        boolean allTakers = mix.stream().noneMatch(b -> b.policy() == SharePolicy.FIXED_SHARE);
        assertThat(allTakers ? Math.abs(sum) : 0).isLessThan(1e3);
      }
    }
  }

  @Property(seed = SEED, tries = 30)
  void sharesThatDoNotAddUpStarveNobody(@ForAll("mixes") List<Busy> mix) {
    // Admission does not let this happen; a take-over of wrong files might.
    List<Busy> twice =
        mix.stream()
            .map(b -> new Busy(SharePolicy.FIXED_SHARE, Math.max(60, b.percent()), b.cls(), MS))
            .toList();
    VirtualNode node = Mixes.start(twice, GateModel.ideal(-1), VirtualNode.settings(0));
    node.runUntil(20 * S);
    boolean online = twice.stream().anyMatch(b -> b.cls() == PreemptionClass.ONLINE);
    for (int i = 0; i < twice.size(); i++) {
      if (!online || twice.get(i).cls() == PreemptionClass.ONLINE) {
        assertThat(node.usedNs(i)).as("tenant %d of %s", i, twice).isGreaterThan(100 * MS);
      }
    }
    assertThat(node.gates().stream().mapToLong(VirtualGate::servedNs).sum())
        .isEqualTo(node.nowNs());
  }
}
