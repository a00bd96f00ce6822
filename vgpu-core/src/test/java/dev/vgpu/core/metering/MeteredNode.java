package dev.vgpu.core.metering;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.UsageRecord;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Virtual GPUs whose use the test sets, and the seats that meter it, in virtual time. */
final class MeteredNode implements NanoClock, AutoCloseable {
  static final long SECOND_NS = 1_000_000_000;

  /** A virtual GPU. Its use outlives seats, as the pages of a hook do. */
  static final class Tenant {
    final String id;
    final String gpu;
    long gpuNs;
    long launches;
    long denied;
    long preemptions;
    long heldBytes;

    Tenant(String id, String gpu) {
      this.id = id;
      this.gpu = gpu;
    }

    UsageReading reading() {
      return new UsageReading(gpuNs, 0, preemptions, 0, 0, 0, heldBytes, 1, launches, denied);
    }
  }

  final Path directory;
  final List<String> failures = new ArrayList<>();
  final Map<Tenant, LeaseAccount> tenants = new LinkedHashMap<>();
  private final @Nullable Path written;
  private final UsageJournal.Limits limits;
  Meter meter;
  long nowNs = 5_000_000_000L;
  long wallMs = 1_800_000_000_000L;

  MeteredNode(UsageJournal.Limits limits) throws IOException {
    this.directory = Files.createTempDirectory("vg");
    this.written = directory.resolve("usage");
    this.limits = limits;
    this.meter = seat();
  }

  /** A node that works for its JVM alone. */
  MeteredNode() throws IOException {
    this.directory = Files.createTempDirectory("vg");
    this.written = null;
    this.limits = UsageJournal.Limits.USUAL;
    this.meter = seat();
  }

  private Meter seat() {
    return new Meter(this, written, limits, failures::add);
  }

  @Override
  public long nanoTime() {
    return nowNs;
  }

  @Override
  public Instant now() {
    return Instant.ofEpochMilli(wallMs);
  }

  void pass(long ms) {
    nowNs += ms * 1_000_000;
    wallMs += ms;
  }

  Tenant acquire(String id, String gpu) {
    Tenant tenant = new Tenant(id, gpu);
    LeaseAccount account = account(tenant);
    tenants.put(tenant, account);
    meter.opened(account, nowNs, wallMs);
    return tenant;
  }

  private static LeaseAccount account(Tenant tenant) {
    return new LeaseAccount(
        tenant.id, tenant.id.replaceFirst("-\\d+$", ""), List.of(new GpuId(tenant.gpu)));
  }

  /** Lets one second pass, then samples. */
  void second() {
    pass(1_000);
    look();
  }

  void look() {
    meter.sample(readings());
    meter.write();
  }

  private List<Meter.Reading> readings() {
    List<Meter.Reading> readings = new ArrayList<>();
    tenants.forEach((tenant, of) -> readings.add(new Meter.Reading(of, tenant.reading())));
    return readings;
  }

  void release(Tenant tenant) {
    meter.closed(new Meter.Reading(tenants.get(tenant), tenant.reading()));
    tenants.remove(tenant);
    meter.write();
  }

  /** Kills the seat's holder; another process takes over the seat and the living virtual GPUs. */
  void takeOver() {
    meter = seat();
    tenants.replaceAll((tenant, before) -> account(tenant));
    tenants.values().forEach(meter::restored);
    meter.write();
  }

  List<UsageRecord> since(Instant since) {
    return meter.since(since, readings());
  }

  List<UsageRecord> all() {
    return since(Instant.EPOCH);
  }

  UsageRecord of(Tenant tenant) {
    List<UsageRecord> its =
        all().stream().filter(record -> record.virtualGpu().equals(tenant.id)).toList();
    if (its.size() != 1) {
      throw new AssertionError("not one record: " + its);
    }
    return its.get(0);
  }

  List<Path> files() throws IOException {
    try (Stream<Path> files = Files.list(directory.resolve("usage"))) {
      return files.sorted().toList();
    }
  }

  @Override
  public void close() throws IOException {
    meter.close();
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    }
  }
}
