package dev.vgpu.core.wire;

import dev.vgpu.backend.BackendChoice;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Encodes and decodes the choices among backends for a request. */
public final class ChoiceValues {
  private static final String COUNT = "choice.count";
  private static final int MOST_CHOICES = 1_000;

  private ChoiceValues() {}

  /**
   * What one backend on one GPU can do for a request.
   *
   * @param gpu the GPU
   * @param backend the backend's name
   * @param verdict whether it is chosen, possible or impossible
   * @param reason why
   * @param cost its cost
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
   * Adds choices to a message.
   *
   * @param message the message
   * @param choices the choices, in order; those beyond the limit of a message are left out
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
   * {@return the choices in a message}
   *
   * @param message a message filled by {@link #put}
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
