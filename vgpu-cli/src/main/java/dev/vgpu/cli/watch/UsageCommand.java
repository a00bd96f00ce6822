package dev.vgpu.cli.watch;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuPool;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.TextTable;
import dev.vgpu.cli.text.Words;
import dev.vgpu.watch.UsageRecord;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** Shows the usage of virtual GPUs, closed ones included. */
@Command(
    name = "usage",
    description = "Show what the virtual GPUs have used, those that are closed too.",
    footer = {
      "",
      "It is written down each second in the run directory, over restarts. gpu time: time of the"
          + " GPU that its work ran; copies: time of the copy engines, where there is some; memory:"
          + " GiB held, times time; preempt: turns lost to more urgent tenants; denied: allocations"
          + " refused for the quota.",
      "",
      "Exit codes: 0 done, 1 it cannot be read, 2 wrong usage."
    })
public final class UsageCommand implements Callable<Integer> {
  private final CliContext context;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  @Mixin private final JsonOption json = new JsonOption();

  @Option(
      names = "--since",
      paramLabel = "TIME",
      description =
          "From when on: how long ago (30m, 24h, 7d), or a date and time (2026-11-20T10:00, of this"
              + " machine's time zone unless it says another). Default: all that is kept.")
  private @Nullable String since;

  @Option(
      names = "--by",
      paramLabel = "WHAT",
      description =
          "What the lines are of: tenant (each virtual GPU, the default), name (all that were asked"
              + " for under one name), gpu.")
  private UsageLine.By by = UsageLine.By.TENANT;

  /** Creates the command. */
  public UsageCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    Instant from = since == null ? Instant.EPOCH : instant(since);
    List<UsageRecord> records;
    try (GpuPool pool = context.pools().get()) {
      records = pool.usageSince(from);
    }
    List<UsageLine> lines = UsageLine.of(records, by);
    if (json.isGiven()) {
      JsonOption.print(context.console(), json(from, lines));
    } else if (lines.isEmpty()) {
      context.console().out().println("No virtual GPU was used" + (since == null ? "." : " then."));
    } else {
      table(lines).lines().forEach(context.console().out()::println);
    }
    return 0;
  }

  /** Parses a moment as people write it. */
  private Instant instant(String text) {
    String trimmed = text.strip();
    Instant now = context.clock().wallTime();
    try {
      if (trimmed.matches("\\d{1,6}[dD]")) {
        String days = trimmed.substring(0, trimmed.length() - 1);
        return now.minus(Duration.ofDays(Long.parseLong(days)));
      }
      if (trimmed.matches("\\d.*[-:].*")) {
        Instant at = dateAndTime(trimmed);
        if (at.isAfter(now)) {
          throw wrong("--since is in the future: " + text + " (now is " + now + ")");
        }
        return at;
      }
      return now.minus(Words.duration(trimmed));
    } catch (DateTimeException | ArithmeticException | TypeConversionException e) {
      throw wrong(
          "--since is neither a span nor a date: '"
              + text
              + "' (write for example 30m, 24h, 7d, 2026-11-20 or 2026-11-20T10:00)");
    }
  }

  private static Instant dateAndTime(String text) {
    ZoneId here = ZoneId.systemDefault();
    if (!text.contains("T")) {
      return LocalDate.parse(text).atStartOfDay(here).toInstant();
    }
    boolean saysZone = text.matches(".*T.*([Zz]|[+-][0-9:]+)");
    return saysZone
        ? OffsetDateTime.parse(text).toInstant()
        : LocalDateTime.parse(text).atZone(here).toInstant();
  }

  private ParameterException wrong(String message) {
    return new ParameterException(spec.commandLine(), message);
  }

  private TextTable table(List<UsageLine> lines) {
    String first =
        switch (by) {
          case TENANT -> "tenant";
          case NAME -> "name";
          case GPU -> "gpu";
        };
    boolean copies = lines.stream().anyMatch(line -> !line.copyTime().isZero());
    List<String> head = new ArrayList<>(List.of(first, "gpu time"));
    head.addAll(copies ? List.of("copies") : List.of());
    head.addAll(List.of("memory", "launches", "calls", "preempt", "denied", "until"));
    TextTable table = new TextTable(head.toArray(String[]::new));
    for (UsageLine line : lines) {
      List<String> row = new ArrayList<>(List.of(line.key(), Words.time(line.gpuTime())));
      row.addAll(copies ? List.of(Words.time(line.copyTime())) : List.of());
      row.add(line.memoryText());
      row.add(Long.toString(line.launches()));
      row.add(Long.toString(line.calls()));
      row.add(Long.toString(line.preemptions()));
      row.add(Long.toString(line.denied()));
      row.add(line.isClosed() ? UsageLine.text(line.to(), context.clock().wallTime()) : "now");
      table.row(row.toArray(String[]::new));
    }
    return table;
  }

  private ObjectNode json(Instant from, List<UsageLine> lines) {
    ObjectNode object = JsonNodeFactory.instance.objectNode();
    if (since == null) {
      object.putNull("since");
    } else {
      object.put("since", from.toString());
    }
    object.put("by", by.name().toLowerCase(java.util.Locale.ROOT)).putArray("usage");
    lines.forEach(line -> object.withArray("usage").add(line.json()));
    return object;
  }
}
