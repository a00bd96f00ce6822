package dev.vgpu.core.wire;

import static java.util.stream.Collectors.joining;

import com.google.common.base.Splitter;
import dev.vgpu.GpuId;
import dev.vgpu.UsageRecord;
import dev.vgpu.core.metering.UsageTotal;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/** Records of what was used as messages: a part of the list at a time, for it may be long. */
public final class UsageValues {
  /** From when on. */
  public static final String SINCE = "since";

  /** How many records the asker has. */
  public static final String FROM = "from";

  private static final String COUNT = "count";
  private static final String TOTAL = "total";
  private static final int MOST_RECORDS = 1_000;

  private UsageValues() {}

  /**
   * Adds the part that is asked for.
   *
   * @param reply to this
   * @param asked says since when, and from which record on
   * @param records gives all of them
   */
  public static void put(
      Message reply, Message asked, Function<Instant, List<UsageRecord>> records) {
    List<UsageRecord> all = records.apply(instant(asked.text(SINCE)));
    int from = (int) Math.max(0, Math.min(asked.number(FROM), all.size()));
    List<UsageRecord> part = all.subList(from, Math.min(all.size(), from + MOST_RECORDS));
    reply.with(TOTAL, all.size()).with(COUNT, part.size());
    for (int i = 0; i < part.size(); i++) {
      put(reply, i + ".", part.get(i));
    }
  }

  private static void put(Message message, String at, UsageRecord record) {
    message
        .with(at + "id", record.virtualGpu())
        .with(at + "name", record.name())
        .with(at + "gpus", record.gpus().stream().map(GpuId::value).collect(joining(" ")))
        .with(at + "from", record.from())
        .with(at + "to", record.to())
        .with(at + "closed", record.isClosed())
        .with(at + "gpuNs", record.gpuTime().toNanos())
        .with(at + "byteSeconds", record.byteSeconds())
        .with(at + "calls", record.calls())
        .with(at + "launches", record.launches())
        .with(at + "preemptions", record.preemptions())
        .with(at + "denied", record.deniedAllocations())
        .with(at + "copyNs", record.copyTime().toNanos());
  }

  /**
   * {@return how many records there are in all}
   *
   * @param reply as {@link #put} made it
   */
  public static long total(Message reply) {
    return reply.number(TOTAL);
  }

  /**
   * {@return the records}
   *
   * @param reply as {@link #put} made it
   */
  public static List<UsageRecord> records(Message reply) {
    List<UsageRecord> records = new ArrayList<>();
    long count = Math.min(MOST_RECORDS, reply.number(COUNT));
    try {
      for (int i = 0; i < count; i++) {
        records.add(record(reply, i + "."));
      }
    } catch (IllegalArgumentException e) {
      throw new MalformedMessageException("not a record of what was used: " + e.getMessage(), e);
    }
    return List.copyOf(records);
  }

  private static UsageRecord record(Message message, String at) {
    return new UsageTotal(
        message.text(at + "id"),
        message.text(at + "name"),
        Splitter.on(' ').splitToStream(message.text(at + "gpus")).map(GpuId::new).toList(),
        instant(message.text(at + "from")),
        instant(message.text(at + "to")),
        message.flag(at + "closed"),
        Duration.ofNanos(message.number(at + "gpuNs")),
        Double.parseDouble(message.text(at + "byteSeconds")),
        message.number(at + "calls"),
        message.number(at + "launches"),
        message.number(at + "preemptions"),
        message.number(at + "denied"),
        Duration.ofNanos(
            message.find(at + "copyNs").isPresent() ? message.number(at + "copyNs") : 0));
  }

  private static Instant instant(String text) {
    try {
      return Instant.parse(text);
    } catch (DateTimeException e) {
      throw new MalformedMessageException("not a time: " + text, e);
    }
  }
}
