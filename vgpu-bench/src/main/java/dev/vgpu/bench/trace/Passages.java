package dev.vgpu.bench.trace;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Turns a prompt's length into texts for an embedding model: the prompt is shortened by a factor
 * and cut into passages. The words come from real sentences, from a different position for each
 * request. Immutable.
 */
public final class Passages {
  /** How many tokens of the trace count as one of ours; suits a small model on a CPU. */
  public static final int PROMPT_TOKENS_PER_TOKEN = 8;

  /** The longest passage; longer prompts are cut. */
  public static final int MAX_PASSAGE_TOKENS = 128;

  /** The most passages in one request; the rest of a longer prompt is dropped. */
  public static final int MAX_PASSAGES = 32;

  private static final int MIN_TOKENS = 8;
  // English text in BERT's vocabulary has five tokens for four words.
  private static final double TOKENS_PER_WORD = 1.25;
  // Coprime to the number of words, so that consecutive requests begin far apart.
  private static final int STRIDE = 389;

  private final String[] words;

  /** Loads the words. */
  public Passages() {
    try (InputStream stream =
        requireNonNull(Passages.class.getResourceAsStream("speeches.txt"), "speeches.txt")) {
      words = new String(stream.readAllBytes(), UTF_8).strip().split("\\s+");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * {@return how many of our tokens represent a prompt}
   *
   * @param contextTokens the prompt's length in the trace; 0 or more
   */
  public static int tokens(int contextTokens) {
    int tokens = contextTokens / PROMPT_TOKENS_PER_TOKEN;
    return Math.max(MIN_TOKENS, Math.min(tokens, MAX_PASSAGES * MAX_PASSAGE_TOKENS));
  }

  /**
   * {@return the texts of a request, at least one}
   *
   * @param tokens their approximate length together, in tokens; above 0
   * @param index the request's index; the same index gives the same texts
   */
  public List<String> of(int tokens, int index) {
    List<String> texts = new ArrayList<>();
    int word = Math.floorMod(index * STRIDE, words.length);
    for (int left = tokens; left > 0; left -= MAX_PASSAGE_TOKENS) {
      int count =
          Math.max(1, (int) Math.round(Math.min(left, MAX_PASSAGE_TOKENS) / TOKENS_PER_WORD));
      texts.add(text(word, count));
      word = (word + count) % words.length;
    }
    return List.copyOf(texts);
  }

  private String text(int first, int count) {
    StringBuilder text = new StringBuilder(count * 6);
    for (int i = 0; i < count; i++) {
      text.append(i == 0 ? "" : " ").append(words[(first + i) % words.length]);
    }
    return text.toString();
  }
}
