package dev.vgpu.samples.inference;

import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Turns texts into token numbers. One tokenizer serves all models of a kind. Safe for use by
 * several threads.
 */
final class SentenceTokenizer implements AutoCloseable {
  /** The largest number of tokens that the model reads: it has no more positions. */
  static final int MAX_TOKENS = 512;

  private final HuggingFaceTokenizer tokenizer;

  /** Reads the tokenizer's description from the class path. */
  SentenceTokenizer(String resource) throws IOException {
    try (InputStream in = Resources.open(resource)) {
      // The file sets exactly 128 tokens, and so truncates longer texts and pads shorter ones. Both
      // are off: a text that is too long must not be truncated silently, and the batch does the
      // padding.
      Map<String, String> options = Map.of("truncation", "false", "padding", "false");
      tokenizer = HuggingFaceTokenizer.newInstance(in, options);
    }
  }

  /**
   * Makes batches for {@link ServedModel#embed(TokenBatch)}. It needs no GPU, so call it outside
   * the turn: inside, every other tenant would wait for it.
   *
   * @param texts at least one
   * @return the batches, in order
   * @throws BadInputException if a text has more than {@value #MAX_TOKENS} tokens
   */
  List<TokenBatch> tokenize(List<String> texts) {
    List<long[]> rows = new ArrayList<>(texts.size());
    for (String text : texts) {
      // One by one, because batchEncode would use every core, and the cores are the device here.
      long[] ids = tokenizer.encode(text).getIds();
      if (ids.length > MAX_TOKENS) {
        throw new BadInputException(
            "texts["
                + rows.size()
                + "] has "
                + ids.length
                + " tokens, and the model reads at most "
                + MAX_TOKENS
                + ": split it");
      }
      rows.add(ids);
    }
    return TokenBatch.split(rows);
  }

  @Override
  public void close() {
    tokenizer.close();
  }
}
