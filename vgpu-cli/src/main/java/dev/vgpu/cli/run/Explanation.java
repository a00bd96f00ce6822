package dev.vgpu.cli.run;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.console.Lines;
import dev.vgpu.cli.text.Words;
import dev.vgpu.request.GpuId;
import java.util.List;
import java.util.Locale;

/** A pool's evaluation of each backend for a request, for people and for programs. */
final class Explanation {
  private Explanation() {}

  /** Whether any backend could serve the request now. */
  static boolean isServed(List<BackendChoice> choices) {
    return choices.stream().anyMatch(each -> each.verdict() == BackendChoice.Verdict.CHOSEN);
  }

  static void print(List<BackendChoice> choices, Console console) {
    int width = console.textWidth();
    GpuId gpu = null;
    for (BackendChoice choice : choices) {
      if (!choice.gpu().equals(gpu)) {
        gpu = choice.gpu();
        console.printStyled("@|bold " + gpu + "|@");
      }
      String style =
          choice.verdict() == BackendChoice.Verdict.CHOSEN ? "@|bold,green " : "@|faint ";
      String verdict = style + String.format(Locale.ROOT, "%-10s", verdict(choice)) + "|@";
      Lines.whole("  " + verdict + " " + choice.backend() + ": " + choice.reason(), width)
          .forEach(console::printStyled);
    }
  }

  private static String verdict(BackendChoice choice) {
    return switch (choice.verdict()) {
      case CHOSEN -> "chosen";
      case POSSIBLE -> "possible";
      case NOT_NOW -> "not now";
      case IMPOSSIBLE -> "no";
    };
  }

  static ObjectNode json(List<BackendChoice> choices) {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.put("served", isServed(choices));
    ArrayNode rows = json.putArray("choices");
    for (BackendChoice choice : choices) {
      ObjectNode row =
          rows.addObject()
              .put("gpu", choice.gpu().value())
              .put("backend", choice.backend())
              .put("verdict", Words.word(choice.verdict()))
              .put("reason", choice.reason())
              .put("cost", choice.cost());
      choice
          .capabilities()
          .ifPresent(can -> Words.of(can).forEach(row.putArray("capabilities")::add));
    }
    return json;
  }
}
