package dev.vgpu.core.metering;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.core.metering.MeteredNode.Tenant;
import dev.vgpu.watch.UsageRecord;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import net.jqwik.api.Tuple;
import org.jspecify.annotations.Nullable;

/** Seats start, sample, and are killed while writing; what they counted stays right. */
@Tag("property")
class MeterProperties {
  enum What {
    ACQUIRE,
    USE,
    LOOK,
    RELEASE,
    TAKE_OVER,
    KILL_WHILE_WRITING
  }

  record Event(What what, int which, int amount) {}

  @Provide
  Arbitrary<List<Event>> events() {
    Arbitrary<What> what =
        Arbitraries.frequency(
            Tuple.of(2, What.ACQUIRE),
            Tuple.of(8, What.USE),
            Tuple.of(8, What.LOOK),
            Tuple.of(1, What.RELEASE),
            Tuple.of(1, What.TAKE_OVER),
            Tuple.of(2, What.KILL_WHILE_WRITING));
    return Combinators.combine(
            what,
            Arbitraries.integers().between(0, 100),
            Arbitraries.integers().between(0, 1_000_000))
        .as(Event::new)
        .list()
        .ofMinSize(10)
        .ofMaxSize(80);
  }

  /**
   * Nothing is counted twice, and nothing is lost of living virtual GPUs, whichever seat is killed
   * when.
   */
  @Property(tries = 150)
  void sumsAreRightWhateverHappens(@ForAll("events") List<Event> events) throws IOException {
    try (MeteredNode node = new MeteredNode(new UsageJournal.Limits(2_000, 1_000_000))) {
      Map<String, Long> closedNs = new HashMap<>();
      List<Tenant> living = new ArrayList<>();
      for (Event event : events) {
        step(node, event, living, closedNs);
        check(node, living, closedNs);
      }
      node.second();
      check(node, living, closedNs);
      assertThat(node.failures).isEmpty();
    }
  }

  private static void step(
      MeteredNode node, Event event, List<Tenant> living, Map<String, Long> closedNs)
      throws IOException {
    if (event.what() == What.ACQUIRE || living.isEmpty()) {
      living.add(
          node.acquire("t-" + (living.size() + closedNs.size()), "GPU-" + event.which() % 2));
      return;
    }
    Tenant tenant = living.get(event.which() % living.size());
    switch (event.what()) {
      case USE -> {
        tenant.gpuNs += event.amount();
        tenant.launches++;
      }
      case LOOK -> node.second();
      case RELEASE -> {
        living.remove(tenant);
        closedNs.put(tenant.id, tenant.gpuNs);
        node.release(tenant);
      }
      case TAKE_OVER -> node.takeOver();
      default -> killWhileWriting(node, event.amount());
    }
  }

  /** Any number of bytes is missing at the end of the records of the last sample. */
  private static void killWhileWriting(MeteredNode node, int where) throws IOException {
    Path before = lastFile(node);
    long size = before == null ? 0 : Files.size(before);
    node.second();
    if (before != null && before.equals(lastFile(node)) && Files.size(before) > size) {
      byte[] bytes = Files.readAllBytes(before);
      Files.write(before, Arrays.copyOf(bytes, (int) size + where % (int) (bytes.length - size)));
    }
    node.takeOver();
  }

  private static @Nullable Path lastFile(MeteredNode node) throws IOException {
    if (!Files.isDirectory(node.directory.resolve("usage"))) {
      return null;
    }
    List<Path> files = node.files();
    return files.isEmpty() ? null : files.get(files.size() - 1);
  }

  private static void check(MeteredNode node, List<Tenant> living, Map<String, Long> closedNs) {
    Map<String, Long> counted = new HashMap<>();
    for (UsageRecord record : node.all()) {
      assertThat(counted.put(record.virtualGpu(), record.gpuTime().toNanos())).isNull();
    }
    Map<String, Long> expected = new HashMap<>(closedNs);
    living.forEach(tenant -> expected.put(tenant.id, tenant.gpuNs));
    assertThat(counted).isEqualTo(expected);
  }
}
