package dev.vgpu.bench.chaos.soak;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.bench.chaos.ChaosFailure;
import dev.vgpu.bench.chaos.Patience;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.request.SharePolicy;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** Measures everything that might grow or drift. Confined to one thread. */
final class SoakMeter {
  /** How long the books may take to agree, in addition to the machine's lateness. */
  private static final long SETTLE_NS = 5_000_000_000L;

  private static final double STILL_SECONDS = 20;

  private final SoakWorld world;
  private double worstStill;

  SoakMeter(SoakWorld world) {
    this.world = world;
  }

  /**
   * Measures once.
   *
   * @return the figures by name
   * @throws ChaosFailure if the books differ, or a tenant stands still
   */
  Map<String, Double> sample() throws InterruptedException {
    Map<String, Double> figures = new LinkedHashMap<>();
    shares(figures);
    PoolProcess holder = world.seats.holder();
    long pid = holder.child().pid();
    figures.put("seat", (double) pid);
    figures.put("heap_mib", holder.heapBytes() / 1048576.0);
    figures.put("threads", (double) entries(Path.of("/proc", Long.toString(pid), "task")));
    figures.put("descriptors", (double) entries(Path.of("/proc", Long.toString(pid), "fd")));
    figures.put("pages", (double) pages(pid));
    figures.put("resident_mib", residentMib(pid));
    disk(figures);
    books(figures);
    figures.put("machine_late_ms", world.machine.worstMs());
    return figures;
  }

  /** Reads all tenants. Those with work must have made progress. */
  private void shares(Map<String, Double> figures) throws InterruptedException {
    List<Double> fixed = new ArrayList<>();
    List<Double> burst = new ArrayList<>();
    double busy = 0;
    int at = 0;
    for (SoakTenant tenant : world.tenants) {
      SoakTenant.Held held = tenant.read();
      at += tenant.child == null ? 0 : 1;
      if (tenant.standsStillSeconds() > 1) {
        awaitProgress(tenant);
      }
      if (held != null) {
        busy += held.part();
        if (held.policy() == SharePolicy.FIXED_SHARE) {
          fixed.add(held.ofShare());
        } else if (held.policy() == SharePolicy.BURST_SHARE) {
          burst.add(held.ofShare());
        }
      }
    }
    figures.put("tenants", (double) at);
    figures.put("gpu_time", busy);
    put(figures, "fixed", fixed);
    put(figures, "burst", burst);
    figures.put("worst_still_s", worstStill);
  }

  private static void put(Map<String, Double> figures, String name, List<Double> values) {
    if (!values.isEmpty()) {
      figures.put(name + "_held", Trend.median(values));
      figures.put(name + "_least", values.stream().min(Double::compare).orElseThrow());
      figures.put(name + "_most", values.stream().max(Double::compare).orElseThrow());
    }
  }

  private void awaitProgress(SoakTenant tenant) throws InterruptedException {
    Patience patience = world.patience(tenant);
    while (tenant.standsStillSeconds() > 1) {
      SoakTenant.Held ignored = tenant.read();
      worstStill = Math.max(worstStill, tenant.standsStillSeconds());
      double limit = STILL_SECONDS - tenant.standsStillSeconds();
      if (tenant.standsStillSeconds() > STILL_SECONDS && patience.isOver((long) (limit * 1e9))) {
        throw new ChaosFailure(
            tenant + " stands still for " + Math.round(tenant.standsStillSeconds()) + " s");
      }
      NanoClock.sleepMillis(20);
    }
  }

  private void disk(Map<String, Double> figures) {
    long bytes = 0;
    long usage = 0;
    long files = 0;
    try (Stream<Path> all = Files.walk(world.node.runDirectory())) {
      for (Path path : all.toList()) {
        long size = Files.isRegularFile(path) ? sizeOf(path) : 0;
        files++;
        if (path.startsWith(world.node.runDirectory().resolve("usage"))) {
          usage += size;
        } else {
          bytes += size;
        }
      }
    } catch (IOException | UncheckedIOException e) {
      return; // A file has just been removed: leave these figures out of the sample.
    }
    figures.put("files", (double) files);
    figures.put("disk_mib", bytes / 1048576.0);
    figures.put("journal_mib", usage / 1048576.0);
  }

  private static long sizeOf(Path path) {
    try {
      return Files.size(path);
    } catch (IOException e) {
      return 0; // it has just ended
    }
  }

  private static long entries(Path directory) {
    try (Stream<Path> all = Files.list(directory)) {
      return all.count();
    } catch (IOException e) {
      throw new ChaosFailure("the seat's holder has ended: " + e);
    }
  }

  /** The number of mappings of the run directory's files in a process. */
  private long pages(long pid) {
    String ours = world.node.runDirectory().toString();
    try (Stream<String> maps =
        Files.lines(Path.of("/proc", Long.toString(pid), "maps"), ISO_8859_1)) {
      return maps.filter(line -> line.contains(ours)).count();
    } catch (IOException | UncheckedIOException e) {
      throw new ChaosFailure("the seat's holder has ended: " + e);
    }
  }

  private static double residentMib(long pid) {
    try {
      String[] words =
          Files.readString(Path.of("/proc", Long.toString(pid), "statm")).split(" ", -1);
      return Long.parseLong(words[1]) / 256.0;
    } catch (IOException e) {
      throw new ChaosFailure("the seat's holder has ended: " + e);
    }
  }

  /** Checks that the GPUs' accounts and the leases' ledgers agree, or agree shortly afterwards. */
  private void books(Map<String, Double> figures) throws InterruptedException {
    long beginNs = NanoClock.nanoTime();
    JsonNode gpus = world.seats.any().truth();
    while (!agree(gpus)) {
      double lateNs = world.machine.lateMs(beginNs) * 1e6;
      if (NanoClock.nanoTime() - beginNs > SETTLE_NS + lateNs) {
        throw new ChaosFailure("the books differ: " + gpus);
      }
      NanoClock.sleepMillis(5);
      gpus = world.seats.any().truth();
    }
    double ledger = 0;
    for (JsonNode gpu : gpus) {
      ledger += gpu.path("ledger").asDouble();
    }
    figures.put("books_settled_ms", (NanoClock.nanoTime() - beginNs) / 1e6);
    figures.put("ledger_mib", ledger / 1048576);
  }

  private static boolean agree(JsonNode gpus) {
    for (JsonNode gpu : gpus) {
      if (gpu.path("ledger").asLong() != gpu.path("truth").asLong()) {
        return false;
      }
    }
    return true;
  }
}
