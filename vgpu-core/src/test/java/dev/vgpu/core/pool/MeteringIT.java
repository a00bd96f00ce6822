package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.core.pool.SeatProcesses.Child;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** The usage of real processes is counted, whichever of them is killed. */
class MeteringIT {
  @Test
  void usageOutlastsSeatsThatAreKilled() throws Exception {
    try (SeatProcesses node = new SeatProcesses()) {
      Child first = node.start();
      String lost = first.ask("acquire lost 20");
      assertThat(first.ask("work " + lost + " 300")).isEqualTo("working");
      Path usage = node.directory.resolve("usage");
      awaitLines(usage, lost, 2); // the first record is from before any use
      Child working = node.start();
      String id = working.ask("acquire kept 30");
      assertThat(working.ask("work " + id + " 300")).isEqualTo("working");
      awaitLines(usage, id, 1);
      long before = 0;
      for (int i = 0; i < 4; i++) {
        Child next = node.start();
        awaitCalls(working, id, 50);
        Child holder = node.holder();
        if (holder != working) {
          holder.kill();
        }
        awaitCalls(working, id, 50);
        long metered = ns(next.ask("metered " + id));
        long used = working.number("used " + id);
        assertThat(metered).isBetween(before, used);
        before = metered;
        // Up to a second of usage that is not written yet dies with a seat. The next record may be
        // one that was begun before the answer above.
        awaitLines(usage, id, lines(usage, id) + 2);
      }
      long last = working.number("used " + id);
      assertThat(working.ask("close " + id)).isEqualTo("closed");
      String closed;
      do {
        LockSupport.parkNanos(1_000_000);
        closed = working.ask("metered " + id);
      } while (!closed.endsWith(" closed"));
      assertThat(ns(closed)).isBetween(last, working.number("used " + id));
      // The first holder's usage was counted up to a second before its death or later.
      assertThat(ns(working.ask("metered " + lost))).isPositive();
    }
  }

  private static long lines(Path usage, String id) throws IOException {
    if (!Files.isDirectory(usage)) {
      return 0;
    }
    long lines = 0;
    try (DirectoryStream<Path> files = Files.newDirectoryStream(usage)) {
      for (Path file : files) {
        lines += Files.readAllLines(file).stream().filter(line -> line.contains(id)).count();
      }
    }
    return lines;
  }

  private static void awaitLines(Path usage, String id, long least) throws IOException {
    while (lines(usage, id) < least) {
      LockSupport.parkNanos(1_000_000);
    }
  }

  private static long ns(String text) {
    assertThat(text).as("one record").matches("\\d+( closed)?");
    return Long.parseLong(text.replace(" closed", ""));
  }

  private static void awaitCalls(Child child, String id, int more) {
    long before = child.number("calls " + id);
    while (child.number("calls " + id) < before + more) {
      LockSupport.parkNanos(1_000_000);
    }
  }

  /** Neither the flight recorder nor the journal slows the opening of a pool. */
  @Test
  void openingAPoolLoadsNeitherTheRecorderNorTheJournal() throws Exception {
    try (SeatProcesses node = new SeatProcesses()) {
      Path loaded = node.directory.resolve("loaded.txt");
      Child child = node.begin("-Xlog:class+load:file=" + loaded);
      assertThat(child.read()).isEqualTo("ready");
      assertThat(classes(loaded)).isNotEmpty().noneMatch(MeteringIT::isLate);
      child.ask("acquire model 20");
      child.end();
      assertThat(child.process.waitFor(10, TimeUnit.SECONDS)).isTrue();
      assertThat(classes(loaded)).anyMatch(MeteringIT::isLate).noneMatch(MeteringIT::isRecording);
    }
  }

  private static List<String> classes(Path log) throws Exception {
    return Files.readAllLines(log).stream().filter(line -> line.contains("source:")).toList();
  }

  private static boolean isLate(String line) {
    return line.contains("jdk.jfr.")
        || line.contains("dev.vgpu.core.flight.")
        || line.contains("dev.vgpu.core.metering.Meter");
  }

  /** Classes needed only for a recording. */
  private static boolean isRecording(String line) {
    return line.contains("jdk.jfr.internal.");
  }
}
