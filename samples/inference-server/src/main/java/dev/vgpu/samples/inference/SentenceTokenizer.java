package dev.vgpu.samples.inference;

import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Texts to token numbers. One serves all models of a kind. Safe for use by several threads. */
final class SentenceTokenizer implements AutoCloseable {
  /** The most tokens that the model reads: it knows no more positions. */
  static final int MAX_TOKENS = 512;

  private final HuggingFaceTokenizer tokenizer;

  /** Reads the tokenizer's description from the class path. */
  SentenceTokenizer(String resource) throws IOException {
    try (InputStream in = Resources.open(resource)) {
      // The file asks for exactly 128 tokens: longer texts cut off, shorter ones padded. Both off:
      // a
      // text that is too long must not lose its end unseen, and padding is the batch's business.
      Map<String, String> options = Map.of("truncation", "false", "padding", "false");
      tokenizer = HuggingFaceTokenizer.newInstance(in, options);
    }
  }

  /**
   * Makes batches for {@link ServedModel#embed(TokenBatch)}. Needs no GPU, so it is done before the
   * turn is asked for: inside, everybody else would wait for it.
   *
   * @param texts at least one
   * @return the batches, in order
   * @throws BadInputException if a text has more than {@value #MAX_TOKENS} tokens
   */
  List<TokenBatch> tokenize(List<String> texts) {
    List<long[]> rows = new ArrayList<>(texts.size());
    for (String text : texts) {
      // One by one: batchEncode would take every core, and those are the device here.
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
