package dev.vgpu.core.wire;

import static java.util.stream.Collectors.joining;

import com.google.common.base.Splitter;
import dev.vgpu.core.metering.Meter;
import dev.vgpu.core.metering.UsageTotal;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.UsageRecord;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** Encodes and decodes usage records. The list may be long, so it is sent in parts. */
public final class UsageValues {
  private static final String SINCE = "since";
  private static final String FROM = "from";
  private static final String COUNT = "count";
  private static final String TOTAL = "total";
  private static final String NEXT = "next";
  private static final int MOST_RECORDS = 1_000;

  private UsageValues() {}

  /**
   * A question for a part of the list.
   *
   * @param since the start of the period
   * @param from the number of records that the client already has
   * @param next what the part before says; empty for the first part
   */
  public record Question(Instant since, long from, String next) {
    /**
     * Throws if an earlier version asks for more than the first part. It counts records; the seat
     * would have to sum up all of them to know which one that is.
     */
    public void check() {
      if (from > 0 && next.isEmpty()) {
        throw new IllegalStateException(
            "this version reads at most " + MOST_RECORDS + " records; use the seat's version");
      }
    }

    /** {@return the answer to this question} */
    public Part answer(Meter.Part part) {
      return new Part(
          part.records(),
          part.next().isEmpty() ? from + part.records().size() : Long.MAX_VALUE,
          part.next());
    }
  }

  /**
   * A part of the list.
   *
   * @param records the records of this part
   * @param total the number of records in the whole list; more, if that is not known yet
   * @param next where the next part begins; empty if there is none, or in an earlier version
   */
  public record Part(List<UsageRecord> records, long total, String next) {}

  /** Adds a question to a message. */
  public static void put(Message message, Question question) {
    message.with(SINCE, question.since).with(FROM, question.from).with(NEXT, question.next);
  }

  /** {@return the question in a message} */
  public static Question question(Message message) {
    return new Question(
        instant(message.text(SINCE)), message.number(FROM), message.find(NEXT).orElse(""));
  }

  /** Adds a part of the list to a message. */
  public static void put(Message reply, Part part) {
    reply.with(TOTAL, part.total).with(COUNT, part.records.size()).with(NEXT, part.next);
    for (int i = 0; i < part.records.size(); i++) {
      put(reply, i + ".", part.records.get(i));
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

  /** {@return the part of the list in a message} */
  public static Part part(Message reply) {
    List<UsageRecord> records = new ArrayList<>();
    long count = Math.min(MOST_RECORDS, reply.number(COUNT));
    try {
      for (int i = 0; i < count; i++) {
        records.add(record(reply, i + "."));
      }
    } catch (IllegalArgumentException e) {
      throw new MalformedMessageException("not a record of what was used: " + e.getMessage(), e);
    }
    return new Part(List.copyOf(records), reply.number(TOTAL), reply.find(NEXT).orElse(""));
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
