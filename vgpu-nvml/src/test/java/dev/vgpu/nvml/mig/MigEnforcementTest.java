package dev.vgpu.nvml.mig;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.contains;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import dev.vgpu.GpuDriverException;
import dev.vgpu.VgpuException;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.testing.TestSeed;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Runs on the emulated GPUs of this module's tests; their instances change meanwhile. */
@Timeout(600)
class MigEnforcementTest extends OneMigGpu {
  /** {@code -Dvgpu.mig.cycles=100000}: the long run. */
  private static final int CYCLES = Integer.getInteger("vgpu.mig.cycles", 400);

  /** A seat lives for less than three eighths of this many cycles. */
  private static final int LIFE = 1_000;

  private static final MigRecord.Terms TERMS = new MigRecord.Terms(2, 1L << 20, false);
  private static final int ONE = 19;
  private static final int TWO = 14;

  MigEnforcementTest() {
    super(2);
  }

  private EnforcedLease grant(MigEnforcement enforcement, String id, EnforcedLease.Listener tells)
      throws IOException {
    return grant(enforcement, id, request(), tells);
  }

  private EnforcedLease grantAs(MigEnforcement enforcement, String id, VirtualGpuRequest request)
      throws IOException {
    return grant(enforcement, id, request, mock());
  }

  /** Only half a GPU has this much of the 2 GiB; it needs one of the seven compute slices. */
  private static VirtualGpuRequest.Builder wide() {
    return fixed(700);
  }

  private static VirtualGpuRequest.Builder fixed(int mebibytes) {
    return VirtualGpuRequest.builder()
        .memory(MemorySize.ofMebibytes(mebibytes))
        .policy(SharePolicy.FIXED_SHARE)
        .computePercent(14);
  }

  private List<Integer> partSizes() {
    return instances().stream()
        .flatMap(each -> each.parts().stream())
        .map(MigState.Part::computeSlices)
        .toList();
  }

  private static VirtualGpuRequest request() {
    return VirtualGpuRequest.builder().name("x").memory(MemorySize.ofMebibytes(300)).build();
  }

  @Test
  void geometryIsReadFromNvml() {
    assertThat(driver.gpu(gpu).geometry().orElseThrow().profiles())
        .extracting(profile -> profile.id() + " " + profile.starts())
        .contains("19 [0, 1, 2, 3, 4, 5, 6]", "9 [0, 4]", "0 [0]", "15 [0, 2, 4, 6]");
    assertThat(physical().unusableAsWhole()).isPresent();
  }

  @Test
  void aLeaseHasAnInstanceOfItsOwnUntilItIsClosed() throws IOException {
    try (MigEnforcement enforcement = open()) {
      EnforcedLease lease = grant(enforcement, "a", mock());
      assertThat(instances()).hasSize(1);
      String device = instances().get(0).parts().get(0).device().value();
      String place = gpu + "/" + instances().get(0).id() + "/0";
      assertThat(lease.environment())
          .containsEntry("CUDA_VISIBLE_DEVICES", device)
          .containsEntry("VGPU_MIG", place);
      assertThat(provider.environment(new GpuId(device))).containsEntry("VGPU_MIG", place);
      assertThat(provider.environment(gpu)).doesNotContainKey("VGPU_MIG");
      assertThat(MigHolders.ofInstances(run))
          .isEqualTo(Map.of(gpu, Map.of(instances().get(0).id(), List.of("a"))));
      lease.close();
      assertThat(instances()).isEmpty();
      assertThat(MigHolders.ofInstances(run)).isEmpty();
    }
  }

  @Test
  void theNextHolderOfTheSeatTakesOverWhatIsHeldAndDestroysTheRest() throws IOException {
    int theirs = driver.create(gpu, ONE, 6, 1);
    driver.createPart(gpu, theirs, 1);
    GpuId held;
    try (MigEnforcement dies = open()) {
      EnforcedLease first = grant(dies, "held", mock());
      EnforcedLease second = grant(dies, "gone", mock());
      assertThat(first).isNotSameAs(second);
      held = new GpuId(first.environment().getOrDefault("CUDA_VISIBLE_DEVICES", ""));
    }
    assertThat(instances()).hasSize(3);
    Files.delete(run.resolve("leases/gone"));
    try (MigEnforcement next = open()) {
      assertThat(instances()).hasSize(2).extracting(MigState.Instance::id).contains(theirs);
      EnforcedLease again = grant(next, "held", mock());
      assertThat(again.environment()).containsEntry("CUDA_VISIBLE_DEVICES", held.value());
      again.close();
      assertThat(instances()).extracting(MigState.Instance::id).containsExactly(theirs);
    }
  }

  @Test
  void aSeatThatIsGivenUpWaitsForNoInstanceAndLeavesItToTheNext() throws Exception {
    CountDownLatch come = new CountDownLatch(1);
    CountDownLatch goes = new CountDownLatch(1);
    Enforcement beneath = mock();
    when(beneath.prepare(any(), any(), any(), any(), any()))
        .thenAnswer(
            call -> {
              come.countDown();
              goes.await();
              throw new VgpuException("it is closed");
            });
    MigEnforcement old = new MigEnforcement(run, beneath, () -> MigDriver.of(provider));
    FutureTask<EnforcedLease> granted = new FutureTask<>(() -> grant(old, "held", mock()));
    new Thread(granted).start();
    come.await();
    old.close();
    goes.countDown();
    assertThatThrownBy(granted::get).hasMessageContaining("it is closed");
    GpuId made = instances().get(0).parts().get(0).device();
    assertThatThrownBy(() -> grant(old, "late", mock())).hasMessageContaining("given the seat up");
    try (MigEnforcement next = open()) {
      EnforcedLease again = grant(next, "held", mock());
      assertThat(again.environment()).containsEntry("CUDA_VISIBLE_DEVICES", made.value());
    }
  }

  @Test
  void aSeatThatIsGivenUpDestroysNothing() throws IOException {
    MigEnforcement old = open();
    EnforcedLease lease = grant(old, "held", mock());
    old.close();
    Files.delete(run.resolve("leases/held"));
    lease.close();
    assertThat(instances()).hasSize(1);
    open().close();
    assertThat(instances()).isEmpty();
  }

  /** As if killed between record and creation, and another process has taken the place. */
  @Test
  void whatOthersMadeAtAnIntendedPlaceIsTheirs() throws IOException {
    Path records = MigEnforcement.directory(run);
    MigRecord.intended("dead", gpu, TWO, 2, List.of(), TERMS).write(records);
    int theirs = driver.create(gpu, TWO, 2, 2);
    driver.createPart(gpu, theirs, 2);
    try (MigEnforcement next = open()) {
      next.look();
      assertThat(instances()).extracting(MigState.Instance::id).containsExactly(theirs);
      assertThat(MigRecord.all(records)).isEmpty();
    }
  }

  /** As if killed between the creation of the two instances, or between their destruction. */
  @Test
  void whatWasHalfMadeIsDestroyedAtTheSecondLook() throws IOException {
    MigRecord.intended("dead", gpu, TWO, 2, List.of(), TERMS).write(MigEnforcement.directory(run));
    assertThat(driver.create(gpu, TWO, 2, 2)).isNotNegative();
    try (MigEnforcement next = open()) {
      next.look();
      assertThat(instances()).isEmpty();
    }
  }

  @Test
  void aFileThatIsNoRecordKeepsNothingElseFromBeingDestroyed() throws IOException {
    Path records = MigEnforcement.directory(run);
    try (MigEnforcement dies = open()) {
      assertThat(grant(dies, "gone", mock()).impaired()).isEmpty();
    }
    Files.delete(run.resolve("leases/gone"));
    Files.write(records.resolve("garbage"), new byte[] {(byte) 0xff, (byte) 0xfe, 0, (byte) 0xc3});
    Files.createDirectory(records.resolve("directory"));
    assertThat(MigRecord.all(records)).containsOnlyKeys("gone");
    try (MigEnforcement next = open()) {
      assertThat(instances()).isEmpty();
      assertThat(next.lack(physical(), request())).isEmpty();
    }
  }

  @Test
  void anInstanceThatSomebodyElseDestroysIsToldOnceAndNotDestroyedAgain() throws IOException {
    EnforcedLease.Listener tells = mock();
    try (MigEnforcement enforcement = open()) {
      EnforcedLease lease = grant(enforcement, "a", tells);
      assertThat(lease.impaired()).isEmpty();
      MigState.Instance made = instances().get(0);
      driver.destroyParts(gpu, made.id());
      driver.destroy(gpu, made.id());
      enforcement.look();
      enforcement.look();
      verify(tells, times(1)).disturbed(contains("its MIG instance was destroyed from outside"));
      assertThat(lease.impaired().orElse("")).contains("its MIG instance was destroyed");
      assertThatThrownBy(lease::environment).isInstanceOf(VgpuException.class);
      int theirs = driver.create(gpu, made.profileId(), made.start(), made.memorySlices());
      driver.createPart(gpu, theirs, made.computeSlices());
      lease.close();
      assertThat(instances()).extracting(MigState.Instance::id).containsExactly(theirs);
    }
  }

  @Test
  void withoutAPlaceNothingIsGrantedAndNothingIsLeft() throws IOException {
    int theirs = driver.create(gpu, 0, 0, 8);
    driver.createPart(gpu, theirs, 7);
    try (MigEnforcement enforcement = open()) {
      assertThat(enforcement.lack(physical(), request())).isPresent();
      assertThatThrownBy(() -> grant(enforcement, "a", mock()))
          .hasMessageContaining("no legal place");
      assertThat(MigHolders.ofInstances(run)).isEmpty();
    }
  }

  /** Two instances with one compute slice each take all memory slices; later leases join them. */
  @Test
  void withoutAPlaceALeaseGetsAComputeInstanceInOneOfOurs() throws IOException {
    try (MigEnforcement enforcement = open()) {
      EnforcedLease first = grantAs(enforcement, "a", wide().build());
      EnforcedLease second = grantAs(enforcement, "b", wide().build());
      assertThat(instances()).hasSize(2);
      assertThat(partSizes()).containsExactly(1, 1);
      assertThat(enforcement.lack(physical(), fixed(200).build())).isEmpty();
      EnforcedLease inside = grantAs(enforcement, "c", fixed(200).build());
      assertThat(instances()).hasSize(2);
      assertThat(partSizes()).containsExactlyInAnyOrder(1, 1, 1);
      assertThat(MigHolders.ofDevices(run)).hasSize(3).containsValues("a", "b", "c");
      assertThat(inside.environment().get("CUDA_VISIBLE_DEVICES"))
          .isNotEqualTo(first.environment().get("CUDA_VISIBLE_DEVICES"))
          .isNotEqualTo(second.environment().get("CUDA_VISIBLE_DEVICES"));
      first.close();
      second.close();
      assertThat(instances()).hasSize(1);
      assertThat(partSizes()).containsExactly(1);
      assertThat(inside.impaired()).isEmpty();
      inside.close();
      assertThat(instances()).isEmpty();
      assertThat(MigRecord.all(MigEnforcement.directory(run))).isEmpty();
    }
  }

  @Test
  void whoDemandsIsolationSharesWithNobody() throws IOException {
    try (MigEnforcement enforcement = open()) {
      VirtualGpuRequest isolated = wide().require(Capabilities.FaultIsolation.ISOLATED).build();
      EnforcedLease one = grantAs(enforcement, "a", isolated);
      EnforcedLease other = grantAs(enforcement, "b", isolated);
      assertThat(enforcement.lack(physical(), fixed(200).build())).isPresent();
      one.close();
      EnforcedLease open = grantAs(enforcement, "c", wide().build());
      assertThat(enforcement.lack(physical(), fixed(200).build())).isEmpty();
      assertThat(enforcement.lack(physical(), isolated)).isPresent();
      other.close();
      open.close();
    }
  }

  @Test
  void quotasOfThoseInOneInstanceTogetherFitItsMemory() throws IOException {
    try (MigEnforcement enforcement = open()) {
      EnforcedLease one = grantAs(enforcement, "a", wide().build());
      EnforcedLease other = grantAs(enforcement, "b", fixed(1000).build());
      assertThat(enforcement.lack(physical(), fixed(300).build())).isEmpty();
      assertThat(enforcement.lack(physical(), fixed(400).build())).isPresent();
      EnforcedLease inside = grantAs(enforcement, "c", fixed(300).build());
      assertThat(MigHolders.ofInstances(run).get(gpu).values()).anyMatch(List.of("a", "c")::equals);
      assertThat(one.tryResize(fixed(800).build(), 140)).isFalse();
      assertThat(enforcement.lack(physical(), fixed(100).build())).isPresent();
      inside.close();
      other.close();
      one.close();
      assertThat(instances()).isEmpty();
    }
  }

  @Test
  void theNextHolderOfTheSeatKnowsWhoIsInWhichPart() throws IOException {
    try (MigEnforcement dies = open()) {
      grantAs(dies, "a", wide().build());
      grantAs(dies, "b", wide().build());
      grantAs(dies, "c", fixed(200).build());
    }
    MigRecord host = MigRecord.all(MigEnforcement.directory(run)).get("c");
    // As if killed between the creation of a compute instance and its record.
    MigState.Instance in =
        instances().stream().filter(each -> each.parts().size() == 2).findFirst().orElseThrow();
    MigRecord.joining("dead", gpu, in, TERMS).write(MigEnforcement.directory(run));
    assertThat(driver.createPart(gpu, in.id(), 1)).isNotNegative();
    assertThat(host.instance()).contains(in.id());
    Files.delete(run.resolve("leases/a"));
    Files.delete(run.resolve("leases/b"));
    try (MigEnforcement next = open()) {
      assertThat(instances()).extracting(MigState.Instance::id).containsExactly(in.id());
      assertThat(instances().get(0).parts())
          .extracting(MigState.Part::device)
          .containsExactly(host.device().orElseThrow());
      grantAs(next, "c", fixed(200).build()).close();
      assertThat(instances()).isEmpty();
    }
  }

  @Test
  void aTornRecordIsNone() {
    String text =
        """
        gpu=GPU-1
        profile=19
        start=2
        before=1 2
        state=INTENDED
        slices=2
        bytes=1048576
        alone=false
        end
        """;
    assertThat(MigRecord.parse("a", text))
        .contains(MigRecord.intended("a", new GpuId("GPU-1"), 19, 2, List.of(1, 2), TERMS));
    for (int length = 0; length < text.length(); length++) {
      assertThat(MigRecord.parse("a", text.substring(0, length))).isEqualTo(Optional.empty());
    }
  }

  /** The seat's process is killed at random moments while another process uses the same GPU. */
  @Test
  @Timeout(value = 4, unit = TimeUnit.HOURS)
  void whereverTheSeatIsKilledNothingLeaksAndNothingOfOthersIsTouched() throws Exception {
    Random random = TestSeed.random();
    Map<Integer, MigState.Instance> theirs = new HashMap<>();
    int done = 0;
    int kills = 0;
    int made = 0;
    long moved = 0;
    for (int round = 0; done < CYCLES; round++) {
      Process seat = seat(CYCLES - done, round);
      int life = 5 + random.nextInt(3 * Math.min(CYCLES, LIFE) / 8);
      boolean last = await(round, seat, theirs, random, life);
      done += count(round);
      moved += lines(round, "moved .*");
      kills += last ? 0 : 1;
      made += theirs.size();
    }
    Process sweeper = seat(0, 1_000_000);
    assertThat(sweeper.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(sweeper.exitValue()).isZero();
    System.out.println(
        "MIG cycles="
            + done
            + " kills="
            + kills
            + " others="
            + theirs.size()
            + " seen="
            + made
            + " moved="
            + moved);
    assertThat(moved).isPositive();
    assertThat(instances()).containsExactlyInAnyOrderElementsOf(theirs.values());
    assertThat(MigRecord.all(MigEnforcement.directory(run))).isEmpty();
  }

  private Path output(int round) {
    return run.resolve("out-" + round);
  }

  private int count(int round) throws IOException {
    return (int) lines(round, "\\d+");
  }

  private long lines(int round, String pattern) throws IOException {
    return Files.readAllLines(output(round)).stream().filter(line -> line.matches(pattern)).count();
  }

  private Process seat(int cycles, int round) throws IOException {
    return new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-cp",
            System.getProperty("java.class.path"),
            "dev.vgpu.nvml.mig.MigSeat",
            run.toString(),
            Integer.toString(cycles),
            Long.toString(TestSeed.seed() + round))
        .redirectOutput(output(round).toFile())
        .redirectErrorStream(true)
        .start();
  }

  /** Waits until the seat ends, or kills it after {@code cycles}; others work meanwhile. */
  private boolean await(
      int round, Process seat, Map<Integer, MigState.Instance> theirs, Random random, int cycles)
      throws Exception {
    while (!seat.waitFor(1 + random.nextInt(20), TimeUnit.MILLISECONDS)) {
      assertThat(instances()).containsAll(theirs.values());
      others(theirs, random);
      if (count(round) >= cycles) {
        seat.destroyForcibly().waitFor();
        others(theirs, random);
        return false;
      }
    }
    assertThat(seat.exitValue()).as(Files.readString(output(round))).isZero();
    return true;
  }

  /** Another process creates or destroys an instance of the profiles that the seat uses. */
  private void others(Map<Integer, MigState.Instance> theirs, Random random) {
    try {
      if (theirs.size() < 3 && random.nextBoolean()) {
        int profile = random.nextBoolean() ? ONE : TWO;
        int size = profile == ONE ? 1 : 2;
        int id = driver.create(gpu, profile, random.nextInt(4) * size, size);
        driver.createPart(gpu, id, size);
        instances().stream().filter(each -> each.id() == id).forEach(it -> theirs.put(id, it));
        assertThat(theirs).containsKey(id);
      } else if (!theirs.isEmpty()) {
        int id = theirs.keySet().iterator().next();
        driver.destroyParts(gpu, id);
        driver.destroy(gpu, id);
        theirs.remove(id);
      }
    } catch (GpuDriverException e) {
      // No room there now.
    }
  }
}
