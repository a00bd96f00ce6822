package dev.vgpu.core.metering;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.vgpu.core.metering.MeteredNode.Tenant;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.UsageRecord;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class MeterTest {
  private static final String GPU = "GPU-1";

  private MeteredNode node;

  @BeforeEach
  void begin() throws IOException {
    node = new MeteredNode(UsageJournal.Limits.USUAL);
  }

  @AfterEach
  void end() throws IOException {
    node.close();
  }

  private static void use(Tenant tenant, long ms) {
    tenant.gpuNs += ms * 1_000_000;
    tenant.launches += ms;
  }

  @Test
  void whatIsUsedIsKeptBeyondTheEndOfTheVirtualGpuAndOfTheSeat() {
    Tenant tenant = node.acquire("model-1", GPU);
    tenant.heldBytes = 1_000;
    use(tenant, 300);
    node.second();
    node.second();
    tenant.denied = 2;
    tenant.preemptions = 5;
    use(tenant, 100);
    node.pass(500);
    node.release(tenant);
    node.takeOver();
    UsageRecord record = node.of(tenant);
    assertThat(record.gpuTime()).isEqualTo(Duration.ofMillis(400));
    assertThat(record.launches()).isEqualTo(400);
    assertThat(record.deniedAllocations()).isEqualTo(2);
    assertThat(record.preemptions()).isEqualTo(5);
    assertThat(record.byteSeconds()).isCloseTo(2_000, within(501.0)); // it grew in the first second
    assertThat(record.isClosed()).isTrue();
    assertThat(record.name()).isEqualTo("model");
    assertThat(Duration.between(record.from(), record.to())).isEqualTo(Duration.ofMillis(2_500));
  }

  @Test
  void whatTheLastHolderDidNotWriteIsCountedByTheNextOnce() {
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 700);
    node.second();
    use(tenant, 250); // no sample is taken before the seat's holder is killed
    node.pass(900);
    node.takeOver();
    use(tenant, 50);
    node.second();
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofSeconds(1));
    for (int i = 0; i < 5; i++) {
      node.takeOver();
      node.look();
      assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofSeconds(1));
    }
  }

  @Test
  void countsThatBeginAnewAreCountedOn() {
    Tenant tenant = node.acquire("model-1", GPU);
    tenant.preemptions = 7;
    use(tenant, 700);
    node.second();
    node.takeOver();
    tenant.preemptions = 0; // the new seat has counted none
    tenant.gpuNs = 200_000_000; // the calls' part was lost with its process
    node.second();
    assertThat(node.of(tenant).preemptions()).isEqualTo(7);
    tenant.preemptions = 3;
    use(tenant, 100);
    node.second();
    assertThat(node.of(tenant).preemptions()).isEqualTo(10);
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(800));
  }

  @Test
  void aReadingThatIsAddedAfterANewerOneIsNotCountedAgain() {
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 100);
    Meter.Reading early = new Meter.Reading(node.tenants.get(tenant), tenant.reading());
    use(tenant, 200);
    node.second();
    assertThat(node.meter.since(Instant.EPOCH, List.of(early)))
        .singleElement()
        .satisfies(record -> assertThat(record.gpuTime()).isEqualTo(Duration.ofMillis(300)));
    use(tenant, 50);
    node.second();
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(350));
    assertThat(node.of(tenant).launches()).isEqualTo(350);
  }

  @Test
  void onlyTheTimeThatIsAskedForCounts() {
    Tenant old = node.acquire("old-1", GPU);
    Tenant tenant = node.acquire("model-2", GPU);
    use(old, 10);
    use(tenant, 300);
    node.second();
    node.release(old);
    Instant since = node.now();
    node.pass(1);
    assertThat(node.since(since))
        .singleElement()
        .satisfies(record -> assertThat(record.gpuTime()).isZero());
    use(tenant, 40);
    node.second();
    use(tenant, 2); // not written yet
    assertThat(node.since(since))
        .singleElement()
        .satisfies(
            record -> {
              assertThat(record.virtualGpu()).isEqualTo("model-2");
              assertThat(record.gpuTime()).isEqualTo(Duration.ofMillis(42));
              assertThat(record.from()).isEqualTo(since);
            });
    assertThat(node.since(node.now().plusSeconds(1))).isEmpty();
    assertThat(node.since(Instant.MAX)).isEmpty();
    assertThat(node.since(Instant.MIN)).hasSize(2);
  }

  @Test
  void idleVirtualGpusWriteNothing() throws IOException {
    node.acquire("model-1", GPU);
    node.second();
    long size = Files.size(node.files().get(0));
    for (int i = 0; i < 100; i++) {
      node.second();
    }
    assertThat(Files.size(node.files().get(0))).isEqualTo(size);
    node.pass(3_600_000);
    node.takeOver();
    assertThat(node.all()).hasSize(1);
  }

  @Test
  void tornLastRecordIsCutOff() throws IOException {
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 100);
    node.second();
    use(tenant, 200);
    node.second();
    Path file = node.files().get(0);
    byte[] bytes = Files.readAllBytes(file);
    Files.write(file, java.util.Arrays.copyOf(bytes, bytes.length - 30));
    node.takeOver();
    use(tenant, 1);
    node.second();
    assertThat(Files.readString(file).lines()).hasSize(2).allMatch(line -> line.startsWith("#"));
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(301));
  }

  @Test
  void garbageInTheMiddleIsLeftOut() throws IOException {
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 100);
    node.second();
    node.takeOver();
    Path file = node.files().get(0);
    Files.writeString(file, "#nonsense\n\n\u0000\u0001 9 9\n", StandardOpenOption.APPEND);
    use(tenant, 200);
    node.takeOver();
    node.second();
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(300));
    assertThat(node.failures).isEmpty();
  }

  @Test
  void fullFilesAreThinnedAndTheOldestGo() throws IOException {
    node.close();
    node = new MeteredNode(new UsageJournal.Limits(3_000, 20_000));
    Tenant idle = node.acquire("idle-1", GPU);
    use(idle, 77);
    Tenant tenant = node.acquire("model-2", GPU);
    node.second();
    Instant early = node.now();
    for (int i = 0; i < 5_000; i++) {
      use(tenant, 100);
      node.second();
    }
    // Until the last file holds the last ten seconds, and has room for more.
    while (linesOfTheLastFile() != 15) {
      use(tenant, 100);
      node.second();
    }
    long bytes = 0;
    for (Path file : node.files()) {
      bytes += Files.size(file);
    }
    assertThat(bytes).isLessThan(24_000);
    assertThat(node.files()).hasSizeGreaterThan(3);
    Instant lately = node.now().minusSeconds(10);
    assertThat(node.since(lately).get(1).gpuTime()).isEqualTo(Duration.ofSeconds(1));
    // Records older than all that is kept are gone; what is kept is right, and nothing is new.
    assertThat(node.since(early).get(1).gpuTime())
        .isBetween(Duration.ofSeconds(30), Duration.ofSeconds(499));
    node.takeOver();
    use(tenant, 100);
    use(idle, 1);
    node.second();
    assertThat(node.since(lately))
        .anySatisfy(
            record -> {
              assertThat(record.virtualGpu()).isEqualTo("idle-1");
              assertThat(record.gpuTime()).isEqualTo(Duration.ofMillis(1));
            })
        .anySatisfy(record -> assertThat(record.gpuTime()).isEqualTo(Duration.ofMillis(1_100)));
  }

  private long linesOfTheLastFile() throws IOException {
    List<Path> files = node.files();
    return Files.readAllLines(files.get(files.size() - 1), StandardCharsets.ISO_8859_1).size();
  }

  @Test
  void whereNothingCanBeWrittenItGoesOnInMemoryAndSaysSoOnce() throws IOException {
    Path inTheWay = Files.writeString(node.directory.resolve("usage"), "not a directory");
    Tenant tenant = node.acquire("model-1", GPU);
    Tenant closed = node.acquire("short-2", GPU);
    for (int i = 0; i < 20; i++) {
      use(tenant, 10);
      node.second();
    }
    use(closed, 3);
    node.release(closed);
    assertThat(node.failures)
        .singleElement()
        .satisfies(
            reason ->
                assertThat(reason)
                    .contains(inTheWay.toString())
                    .contains("make room there, or let this user write there"));
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(200));
    assertThat(node.of(closed).gpuTime()).isEqualTo(Duration.ofMillis(3));
    Files.delete(inTheWay);
    node.pass(10_000);
    node.look();
    node.takeOver();
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(200));
    assertThat(node.of(closed).gpuTime()).isEqualTo(Duration.ofMillis(3));
  }

  @Test
  void fullDiskLosesNothingThatIsStillKnown() throws IOException {
    Files.createDirectory(node.directory.resolve("usage"));
    Path file = node.directory.resolve("usage").resolve("usage-000000001.log");
    Files.createSymbolicLink(file, Path.of("/dev/full"));
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 10);
    node.second();
    assertThat(node.failures).hasSize(1);
    Files.delete(file);
    node.pass(10_000);
    use(tenant, 10);
    node.look();
    node.takeOver();
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(20));
  }

  @Test
  void aHolderThatWasLateToStopTakesNothingFromTheNextOnesRecords() throws IOException {
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 100);
    node.second();
    Meter before = node.meter;
    LeaseAccount its = node.tenants.get(tenant);
    node.takeOver();
    Tenant brief = node.acquire("brief-2", GPU);
    use(brief, 30);
    node.release(brief);
    use(tenant, 5);
    before.sample(List.of(new Meter.Reading(its, tenant.reading())));
    before.write(); // it had hung right here
    node.takeOver();
    assertThat(node.of(brief).gpuTime()).isEqualTo(Duration.ofMillis(30));
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(105));

    before.abandon();
    long size = Files.size(node.files().get(0));
    use(tenant, 5);
    before.sample(List.of(new Meter.Reading(its, tenant.reading())));
    before.write();
    before.close();
    assertThat(node.files()).singleElement().satisfies(file -> assertThat(file).hasSize(size));
    assertThat(node.failures).isEmpty();
  }

  @Test
  void aFileThatCannotBeThinnedLeavesNoPartOfAnotherBehind() throws IOException {
    node.close();
    node = new MeteredNode(new UsageJournal.Limits(1_000, 100_000));
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 1);
    node.second();
    Path full = node.files().get(0);
    Path part = full.resolveSibling(full.getFileName() + ".new");
    // What is written goes nowhere, as on a full disk.
    Files.createSymbolicLink(part, Path.of("/dev/full"));
    while (!Files.exists(full.resolveSibling("usage-000000002.log"))) {
      use(tenant, 1);
      node.second();
    }
    assertThat(node.failures).hasSize(1);
    assertThat(part).matches(path -> !Files.exists(path, LinkOption.NOFOLLOW_LINKS));
  }

  @Test
  void whatCannotBeReadIsNotCountedTwice() throws IOException {
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 500);
    node.second();
    node.meter.close();
    Path usage = node.directory.resolve("usage");
    Path away = Files.move(usage, node.directory.resolve("away"));
    Files.writeString(usage, "in the way");
    node.takeOver();
    use(tenant, 5);
    node.second();
    use(tenant, 20);
    node.second();
    Files.delete(usage);
    Files.move(away, usage);
    node.pass(10_000);
    node.look();
    Duration sum =
        node.all().stream().map(UsageRecord::gpuTime).reduce(Duration.ZERO, Duration::plus);
    assertThat(sum).isBetween(Duration.ofMillis(520), Duration.ofMillis(525));
  }

  @Test
  void removedDirectoryIsMadeAgain() throws IOException {
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 10);
    node.second();
    for (Path file : node.files()) {
      Files.delete(file);
    }
    Files.delete(node.directory.resolve("usage"));
    node.second();
    use(tenant, 20);
    node.second();
    assertThat(Files.readString(node.files().get(0), StandardCharsets.ISO_8859_1).lines())
        .hasSize(1);
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(20)); // the rest is removed
  }

  @Test
  void hugeFileThatNobodyWroteIsPassedBy() throws IOException {
    node.close();
    node = new MeteredNode(new UsageJournal.Limits(1_000, 100_000));
    Files.createDirectory(node.directory.resolve("usage"));
    Path file = node.directory.resolve("usage").resolve("usage-000000041.log");
    Files.writeString(file, "x".repeat(50_000));
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 10);
    node.second();
    assertThat(node.files()).hasSize(2);
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(10));
  }

  @Test
  void timeOfDayThatIsSetBackCountsNothingTwice() {
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 10);
    node.second();
    node.wallMs -= 3_600_000;
    use(tenant, 20);
    node.second();
    node.takeOver();
    use(tenant, 40);
    node.second();
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(70));
    assertThat(node.of(tenant).byteSeconds()).isZero();
  }

  @Test
  void timeOfDayThatIsSetAcrossATakeOverIsNotTakenForTimeInWhichMemoryWasHeld() {
    Tenant tenant = node.acquire("model-1", GPU);
    tenant.heldBytes = 1_000;
    node.second();
    node.second();
    node.wallMs += 86_400_000;
    node.pass(3_000);
    node.takeOver();
    node.second();
    // It grew in the first second.
    assertThat(node.of(tenant).byteSeconds()).isCloseTo(6_000, within(501.0));
  }

  @Test
  void aRecordInTheSpanCountsThoughTheTimeOfDayIsSetBackBeforeIt() {
    Tenant tenant = node.acquire("model-1", GPU);
    node.second();
    Instant since = node.now();
    use(tenant, 10);
    node.second();
    node.wallMs -= 3_600_000;
    use(tenant, 20);
    node.second();
    assertThat(node.since(since))
        .singleElement()
        .satisfies(record -> assertThat(record.gpuTime()).isEqualTo(Duration.ofMillis(10)));
  }

  @Test
  void jvmAloneRemembersWithoutFiles() throws IOException {
    node.close();
    node = new MeteredNode();
    Tenant tenant = node.acquire("model-1", GPU);
    for (int i = 0; i < 50_000; i++) {
      use(tenant, 10);
      node.second();
    }
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofSeconds(500));
    assertThat(node.since(node.now().minusSeconds(1_000)).get(0).gpuTime())
        .isBetween(Duration.ofSeconds(10), Duration.ofMillis(10_600));
    node.release(tenant);
    assertThat(node.of(tenant).isClosed()).isTrue();
    try (var files = Files.list(node.directory)) {
      assertThat(files).isEmpty();
    }
  }

  @Test
  void refusedAllocationsAreToldOnce() {
    Tenant tenant = node.acquire("model-1", GPU);
    tenant.denied = 3;
    node.second();
    LeaseAccount account = node.tenants.get(tenant);
    assertThat(node.meter.newlyDenied(account)).isEqualTo(3);
    assertThat(node.meter.newlyDenied(account)).isZero();
    node.takeOver();
    tenant.denied = 4;
    node.second();
    assertThat(node.meter.newlyDenied(node.tenants.get(tenant))).isEqualTo(1);
  }

  @Test
  void closedWhileTheNewSeatStillReadsIsWrittenAllTheSame() {
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 10);
    node.second();
    node.meter = new Meter(node, node.directory.resolve("usage"), node.failures::add);
    LeaseAccount account = new LeaseAccount("model-1", "model", List.of(new GpuId(GPU)));
    node.meter.restored(account);
    use(tenant, 5);
    node.meter.closed(new Meter.Reading(account, tenant.reading()));
    node.meter.write();
    node.meter.write();
    node.tenants.clear();
    assertThat(node.all())
        .singleElement()
        .satisfies(
            record -> {
              assertThat(record.isClosed()).isTrue();
              assertThat(record.gpuTime()).isEqualTo(Duration.ofMillis(15));
            });
  }

  @Test
  void aQuestionRightAfterATakeOverIsAnsweredWithAllUse() {
    Tenant tenant = node.acquire("model-1", GPU);
    use(tenant, 10);
    node.second();
    use(tenant, 5); // not written
    assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(15));
    node.meter = new Meter(node, node.directory.resolve("usage"), node.failures::add);
    LeaseAccount account = new LeaseAccount("model-1", "model", List.of(new GpuId(GPU)));
    node.meter.restored(account);
    Meter.Reading reading = new Meter.Reading(account, tenant.reading());
    assertThat(node.meter.since(Instant.EPOCH, List.of(reading)))
        .singleElement()
        .satisfies(record -> assertThat(record.gpuTime()).isEqualTo(Duration.ofMillis(15)));
  }
}
