package dev.vgpu.cli.watch;

import dev.vgpu.GpuPool;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.console.HarmlessText;
import dev.vgpu.cli.process.EndSignal;
import dev.vgpu.cli.text.EventTexts;
import java.io.PrintStream;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Shows repeatedly how much each virtual GPU uses. */
@Command(
    name = "top",
    description = "Show each second what the virtual GPUs are entitled to and what they get.",
    footer = {
      "",
      "share: policy and percent of the GPU's time; held: its GPU time in the interval, with *"
          + " if it is held back because it is at its fixed share; wait: threads and calls that"
          + " wait for a turn; lost: turns lost to more urgent tenants; slow: how much longer its"
          + " work takes beside others than alone (1.00: no longer). Below: the latest events and"
          + " their reasons. With --json, one object in one line each time.",
      "",
      "Exit codes: 0 done, also by Ctrl-C; 1 the GPUs cannot be read, 2 wrong usage."
    })
public final class TopCommand implements Callable<Integer> {
  private static final String HOME = "\u001b[H";
  private static final String CLEAR_LINE = "\u001b[K";
  private static final String CLEAR_BELOW = "\u001b[J";
  private static final Duration SHORTEST = Duration.ofMillis(50);
  private static final int SHOWN_EVENTS = 8;

  private final CliContext context;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  @Mixin private final JsonOption json = new JsonOption();

  @Option(
      names = "--interval",
      paramLabel = "DURATION",
      description = "How often, for example 500ms. Default: 1s.")
  private Duration interval = Duration.ofSeconds(1);

  @Option(names = "--count", paramLabel = "N", description = "Exit after N updates.")
  private @Nullable Integer count;

  /** Creates the command. */
  public TopCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    if (interval.compareTo(SHORTEST) < 0) {
      throw wrong("--interval is shorter than " + SHORTEST.toMillis() + "ms");
    }
    if (count != null && count < 1) {
      throw wrong("--count is not above 0: " + count);
    }
    Thread self = Thread.currentThread();
    EndSignal.INT.handle(self::interrupt);
    try (GpuPool pool = context.pools().get()) {
      show(pool);
    } catch (InterruptedException e) {
      // Ctrl-C is the normal way to end the command; this thread ends with it.
      context.console().out().flush();
    }
    return 0;
  }

  private ParameterException wrong(String message) {
    return new ParameterException(spec.commandLine(), message);
  }

  private void show(GpuPool pool) throws InterruptedException {
    TopFrame.Look before = TopFrame.Look.at(context, pool);
    if (isLive()) {
      context.console().outDrawn().print(HOME + CLEAR_BELOW);
      draw(new TopFrame(before, before), before);
    }
    long dueNs = before.atNs();
    for (int shown = 0; count == null || shown < count; shown++) {
      dueNs = Math.max(dueNs + interval.toNanos(), context.clock().nowNs());
      context.clock().sleepUntil(dueNs);
      TopFrame.Look after = TopFrame.Look.at(context, pool);
      TopFrame frame = new TopFrame(before, after);
      before = after;
      PrintStream out = context.console().out();
      if (json.isGiven()) {
        out.println(frame.json());
      } else if (isLive()) {
        draw(frame, after);
      } else {
        append(frame, after, shown > 0);
      }
      if (out.checkError()) {
        return; // the reader of standard output has gone
      }
    }
  }

  private boolean isLive() {
    return context.console().outIsTerminal() && !json.isGiven();
  }

  private void append(TopFrame frame, TopFrame.Look look, boolean isNext) {
    PrintStream out = context.console().out();
    if (isNext) {
      out.println();
    }
    out.println(look.wallTime().truncatedTo(ChronoUnit.SECONDS));
    frame.lines().forEach(out::println);
    frame.newEvents().stream().map(EventTexts::line).forEach(out::println);
  }

  /** Overwrites the previous frame. Headings are bold. */
  private void draw(TopFrame frame, TopFrame.Look look) {
    Console console = context.console();
    StringBuilder screen = new StringBuilder(HOME);
    screen.append("vgpu top, ").append(look.wallTime().truncatedTo(ChronoUnit.SECONDS));
    screen.append(CLEAR_LINE).append("\n").append(CLEAR_LINE).append("\n");
    List<String> lines = frame.lines();
    for (String others : lines) {
      String line = HarmlessText.oneLine(others);
      boolean isHeading = line.startsWith("tenant ");
      screen.append(isHeading ? console.outAnsi().string("@|bold " + line + "|@") : line);
      screen.append(CLEAR_LINE).append("\n");
    }
    List<String> events = frame.lastEvents(SHOWN_EVENTS);
    if (!events.isEmpty()) {
      screen.append(CLEAR_LINE).append("\n");
    }
    events.forEach(
        line -> screen.append(HarmlessText.oneLine(line)).append(CLEAR_LINE).append("\n"));
    console.outDrawn().print(screen.append(CLEAR_BELOW));
    console.outDrawn().flush();
  }
}
