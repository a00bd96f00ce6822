package dev.vgpu.nvml.mig;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;

import dev.vgpu.VgpuException;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Requests that name a part of an emulated GPU of 2 GiB. */
@Timeout(60)
class MigPartsTest extends OneMigGpu {
  private static final MigGeometry H100 = MigGeometry.ofSeven(MemorySize.ofGibibytes(80), 132);
  private static final int ONE = 19;
  private static final int TWO = 14;
  private static final int THREE = 9;

  MigPartsTest() {
    super(0);
  }

  private EnforcedLease grant(MigEnforcement enforcement, String id, VirtualGpuRequest request)
      throws IOException {
    return grant(enforcement, id, request, mock());
  }

  private String name(int profile) {
    return driver.gpu(gpu).geometry().orElseThrow().profile(profile).orElseThrow().name();
  }

  private static VirtualGpuRequest.Builder any(int mebibytes) {
    return VirtualGpuRequest.builder().name("x").memory(MemorySize.ofMebibytes(mebibytes));
  }

  private VirtualGpuRequest part(int profile, int start) {
    return any(100).part(name(profile) + ":" + start).build();
  }

  private List<String> places() {
    return instances().stream()
        .map(each -> each.profileId() + ":" + each.start())
        .sorted()
        .toList();
  }

  @Test
  void whatAGpuDoesNotHaveIsRefusedWithWhatItHas() {
    assertThat(MigParts.unable(H100, any(1).part("5g.50gb").build()).orElse(""))
        .startsWith("has no part 5g.50gb, only 1g.10gb:0|1|2|3|4|5|6, ")
        .endsWith("3g.40gb:0|4, 4g.40gb:0, 7g.80gb:0");
    assertThat(MigParts.unable(H100, any(1).part("3g.40gb:2").build()))
        .contains("has no part 3g.40gb:2, only 3g.40gb:0|4");
    assertThat(MigParts.unable(H100, any(20_000).part("1g.10gb").build()))
        .contains("part 1g.10gb has only 10GiB and 1 of 7 compute slices");
    VirtualGpuRequest half =
        any(1).part("3g.40gb").policy(SharePolicy.FIXED_SHARE).computePercent(50).build();
    assertThat(MigParts.unable(H100, half))
        .contains("part 3g.40gb has only 40GiB and 3 of 7 compute slices");
    assertThat(MigParts.wanted(H100, half)).isEmpty();
    assertThat(MigParts.unable(H100, any(1).part("1g.10gb+me:6").build())).isEmpty();
    assertThat(MigParts.wanted(H100, any(1).part("3g.40gb").build()))
        .extracting(MigProfile::starts)
        .containsExactly(List.of(0, 4));
    assertThat(MigParts.wanted(H100, any(1).part("3g.40gb:4").build()))
        .extracting(MigProfile::starts)
        .containsExactly(List.of(4));
  }

  /** The planner would choose other places for these, and other profiles for so little memory. */
  @Test
  void exactlyThePartThatWasAskedForIsMade() throws IOException {
    try (MigEnforcement enforcement = open()) {
      for (VirtualGpuRequest each : List.of(part(ONE, 3), part(TWO, 0), part(THREE, 4))) {
        assertThat(enforcement.lack(physical(), each)).isEmpty();
        EnforcedLease lease = grant(enforcement, "x-" + places().size(), each);
        assertThat(lease.environment().get("CUDA_VISIBLE_DEVICES")).startsWith("MIG-");
      }
      assertThat(places()).containsExactly(TWO + ":0", ONE + ":3", THREE + ":4");
      assertThat(MigRecord.all(MigEnforcement.directory(run)).values())
          .allMatch(record -> record.terms().isAlone());
      EnforcedLease small = grant(enforcement, "other", any(100).part(name(ONE)).build());
      assertThat(places()).contains(ONE + ":2");
      small.close();
    }
  }

  @Test
  void aPlaceThatIsTakenIsRefusedWithTheFreeOnesAndNothingElseIsMade() throws IOException {
    try (MigEnforcement enforcement = open()) {
      EnforcedLease holds = grant(enforcement, "holds", part(ONE, 5));
      VirtualGpuRequest asked = part(THREE, 4);
      String lack = "has no room for part X:4 now, only for X:0".replace("X", name(THREE));
      assertThat(enforcement.lack(physical(), asked)).contains(lack);
      assertThatThrownBy(() -> grant(enforcement, "a", asked))
          .isInstanceOf(VgpuException.class)
          .hasMessageStartingWith(lack);
      EnforcedLease other = grant(enforcement, "other", part(THREE, 0));
      assertThat(enforcement.lack(physical(), asked).orElse(""))
          .endsWith(" now, nor for any of this profile");
      assertThat(places()).containsExactly(ONE + ":5", THREE + ":0");
      holds.close();
      assertThat(enforcement.lack(physical(), asked)).isEmpty();
      EnforcedLease served = grant(enforcement, "a", asked);
      assertThat(places()).containsExactly(THREE + ":0", THREE + ":4");
      other.close();
      served.close();
      assertThat(places()).isEmpty();
    }
  }

  @Test
  void nobodyJoinsAPartThatWasAskedForAndItJoinsNobody() throws IOException {
    try (MigEnforcement enforcement = open()) {
      EnforcedLease all = grant(enforcement, "a", part(0, 0));
      assertThat(enforcement.lack(physical(), any(100).build())).isPresent();
      all.close();
      VirtualGpuRequest.Builder share = any(700).policy(SharePolicy.FIXED_SHARE).computePercent(14);
      EnforcedLease one = grant(enforcement, "b", share.build());
      EnforcedLease other = grant(enforcement, "c", share.build());
      assertThat(enforcement.lack(physical(), any(100).build())).isEmpty();
      assertThat(enforcement.lack(physical(), any(100).part(name(ONE)).build())).isPresent();
      one.close();
      other.close();
    }
  }

  @Test
  void theNextHolderOfTheSeatKeepsThePartAndItsPlace() throws IOException {
    VirtualGpuRequest asked = part(ONE, 3);
    String device;
    try (MigEnforcement dies = open()) {
      device = grant(dies, "a", asked).environment().get("CUDA_VISIBLE_DEVICES");
    }
    try (MigEnforcement next = open()) {
      EnforcedLease again = grant(next, "a", asked);
      assertThat(again.environment()).containsEntry("CUDA_VISIBLE_DEVICES", device);
      assertThat(next.makeRoom(physical(), any(1_000).build(), id -> true)).isEmpty();
      assertThat(places()).containsExactly(ONE + ":3");
      again.close();
    }
  }

  /** As if killed when the instance was created, but had no compute instance yet. */
  @Test
  void thePartIsMadeAnewAtItsPlaceIfItWasHalfMade() throws IOException {
    MigRecord.Terms terms = new MigRecord.Terms(1, 1L << 20, true);
    MigRecord intent = MigRecord.intended("a", gpu, ONE, 3, List.of(), terms);
    intent.begun(driver.create(gpu, ONE, 3, 1)).write(MigEnforcement.directory(run));
    Files.createDirectories(run.resolve("leases/a"));
    try (MigEnforcement next = open()) {
      EnforcedLease lease = grant(next, "a", part(ONE, 3));
      next.look();
      next.look();
      assertThat(places()).containsExactly(ONE + ":3");
      assertThat(lease.impaired()).isEmpty();
      lease.close();
    }
  }

  /** A foreign instance at 6 blocks the upper half, ours blocks the lower. */
  @Test
  void onlyAPartThatWasAskedForWithoutAPlaceIsMoved() throws IOException {
    VirtualGpuRequest half = any(100).part(name(THREE)).build();
    theirs(ONE, 6, 1);
    try (MigEnforcement enforcement = open()) {
      for (String place : List.of(":1", "")) {
        int left = theirs(TWO, 4, 2);
        VirtualGpuRequest small = any(100).part(name(ONE) + place).build();
        EnforcedLease lease = grant(enforcement, "a", small);
        List<String> before = places();
        driver.destroyParts(gpu, left);
        driver.destroy(gpu, left);
        enforcement.look();
        assertThat(enforcement.lack(physical(), half)).isPresent();
        assertThat(enforcement.makeRoom(physical(), half, id -> true))
            .hasSize(place.isEmpty() ? 1 : 0);
        assertThat(enforcement.lack(physical(), half).isEmpty()).isEqualTo(place.isEmpty());
        assertThat(before.containsAll(places())).isEqualTo(!place.isEmpty());
        lease.close();
      }
    }
  }

  /** Room is made for the place that was asked for, although another one has room. */
  @Test
  void roomIsMadeAtThePlaceThatWasAskedFor() throws IOException {
    try (MigEnforcement enforcement = open()) {
      EnforcedLease small = grant(enforcement, "a", any(100).part(name(ONE)).build());
      int place = MigRecord.all(MigEnforcement.directory(run)).get("a").start();
      VirtualGpuRequest asked = part(THREE, place < 4 ? 0 : 4);
      assertThat(enforcement.makeRoom(physical(), asked, id -> true)).hasSize(1);
      EnforcedLease half = grant(enforcement, "b", asked);
      assertThat(places()).hasSize(2).contains(THREE + ":" + (place < 4 ? 0 : 4));
      assertThat(small.impaired()).isEmpty();
      small.close();
      half.close();
    }
  }
}
