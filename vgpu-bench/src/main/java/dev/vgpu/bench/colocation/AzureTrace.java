package dev.vgpu.bench.colocation;

import dev.vgpu.simulation.trace.Trace;
import java.time.LocalDateTime;
import java.util.List;
import java.util.Locale;

/**
 * A trace of the Azure Public Dataset (2023, CC-BY 4.0), and the cost of its tokens. The cost is
 * that of a model whose mean request takes some milliseconds. The coding service's cost is half as
 * large. Thus its burst of 67 requests in one second is part of the replay at every load, and is
 * not slowed down.
 */
enum AzureTrace {
  /** A conversation service. */
  CONV(Trace.Builtin.CONV, 4_000, 25_000),
  /** A coding service, with bursts. */
  CODE(Trace.Builtin.CODE, 2_000, 12_500);

  private final Trace.Builtin trace;
  private final long promptTokenNs;
  private final long answerTokenNs;

  AzureTrace(Trace.Builtin trace, long promptTokenNs, long answerTokenNs) {
    this.trace = trace;
    this.promptTokenNs = promptTokenNs;
    this.answerTokenNs = answerTokenNs;
  }

  /** {@return the word on the command line} */
  String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** {@return the cost of a token, in words} */
  String model() {
    return String.format(
        Locale.ROOT,
        "%.1f us of GPU time a prompt token, %.1f us a generated token",
        promptTokenNs / 1e3,
        answerTokenNs / 1e3);
  }

  /** {@return when its first request arrived} */
  LocalDateTime start() {
    return trace.load().start();
  }

  /** {@return its requests, in the order of their arrival} */
  List<Request> requests() {
    return trace.load().requests().stream()
        .map(
            request ->
                new Request(
                    request.arrivalNs(),
                    request.contextTokens() * promptTokenNs,
                    request.generatedTokens() * answerTokenNs))
        .toList();
  }
}
