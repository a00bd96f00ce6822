package dev.vgpu.core.wire;

import dev.vgpu.BackendChoice;
import dev.vgpu.Capabilities;
import dev.vgpu.GpuId;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** What a pool makes of each backend for a request, as messages. */
public final class ChoiceValues {
  private static final String COUNT = "choice.count";
  private static final int MOST_CHOICES = 1_000;

  private ChoiceValues() {}

  /**
   * What a pool makes of one backend on one GPU.
   *
   * @param gpu the GPU
   * @param backend its name
   * @param verdict what comes of it
   * @param reason why
   * @param cost what it costs
   * @param capabilities what it enforces
   */
  public record Choice(
      GpuId gpu,
      String backend,
      Verdict verdict,
      String reason,
      int cost,
      Optional<Capabilities> capabilities)
      implements BackendChoice {}

  /**
   * Adds choices.
   *
   * @param message to this
   * @param choices in their order; more than a message holds are left out
   */
  public static void put(Message message, List<? extends BackendChoice> choices) {
    int count = Math.min(MOST_CHOICES, choices.size());
    message.with(COUNT, count);
    for (int i = 0; i < count; i++) {
      BackendChoice choice = choices.get(i);
      String at = "choice." + i + ".";
      message
          .with(at + "gpu", choice.gpu())
          .with(at + "backend", choice.backend())
          .with(at + "verdict", choice.verdict().name())
          .with(at + "reason", choice.reason())
          .with(at + "cost", choice.cost());
      choice.capabilities().ifPresent(can -> message.with(at + "can.", RequestValues.of(can)));
    }
  }

  /**
   * {@return choices}
   *
   * @param message as {@link #put} made it
   */
  public static List<BackendChoice> choices(Message message) {
    List<BackendChoice> choices = new ArrayList<>();
    long count = Math.min(MOST_CHOICES, message.number(COUNT));
    try {
      for (int i = 0; i < count; i++) {
        String at = "choice." + i + ".";
        Map<String, String> can = message.under(at + "can.");
        choices.add(
            new Choice(
                new GpuId(message.text(at + "gpu")),
                message.text(at + "backend"),
                BackendChoice.Verdict.valueOf(message.text(at + "verdict")),
                message.text(at + "reason"),
                (int) message.number(at + "cost"),
                can.isEmpty()
                    ? Optional.empty()
                    : Optional.of(RequestValues.capabilities("", can))));
      }
    } catch (IllegalArgumentException e) {
      throw new MalformedMessageException("not a choice: " + e.getMessage(), e);
    }
    return List.copyOf(choices);
  }
}
