package dev.vgpu.samples.inference;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession.RunOptions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

final class EmbeddingModelTest {
  private static ModelStore store;

  @BeforeAll
  static void open() throws Exception {
    store = ModelStore.open();
  }

  @AfterAll
  static void close() {
    store.close();
  }

  private static List<float[]> embed(String... texts) throws OrtException {
    List<float[]> vectors = new ArrayList<>();
    for (TokenBatch batch : store.tokenizer().tokenize(List.of(texts))) {
      vectors.addAll(Arrays.asList(new EmbedCall(store.load("test"), batch).call()));
    }
    return vectors;
  }

  private static double dot(float[] a, float[] b) {
    double sum = 0;
    for (int i = 0; i < a.length; i++) {
      sum += (double) a[i] * b[i];
    }
    return sum;
  }

  @Test
  void likeMeaningsAreNear() throws Exception {
    List<float[]> vectors =
        embed(
            "a cat sits on the mat", "a kitten rests on the rug", "the stock market fell sharply");

    assertThat(dot(vectors.get(0), vectors.get(1))).isGreaterThan(0.5);
    assertThat(dot(vectors.get(0), vectors.get(2))).isLessThan(0.2);
  }

  @Test
  void vectorsHaveLengthOne() throws Exception {
    for (float[] vector :
        embed("one", "a few words more", "and then some, until it is a sentence.")) {
      assertThat(vector).hasSize(EmbeddingModel.DIMENSIONS);
      assertThat(dot(vector, vector)).isCloseTo(1, within(1e-5));
    }
  }

  /** Quantisation picks its scale from the whole batch, so the vectors are not bitwise equal. */
  @Test
  void paddingBesideALongerTextChangesNothingThatMatters() throws Exception {
    String text = "Ask not what your country can do for you.";
    float[] alone = embed(text).get(0);
    float[] padded = embed(text, text + " And this one is a good deal longer. ".repeat(8)).get(0);

    assertThat(dot(alone, padded)).isGreaterThan(0.98);
  }

  @Test
  void equalTextsInOneBatchGiveEqualVectors() throws Exception {
    List<float[]> vectors = embed("the same", "the same", "the same");

    assertThat(vectors.get(1)).isEqualTo(vectors.get(0));
    assertThat(vectors.get(2)).isEqualTo(vectors.get(0));
    assertThat(embed("the same").get(0)).isEqualTo(vectors.get(0));
  }

  @Test
  void aTerminatedRunFailsAndTheSessionWorksOn() throws Exception {
    float[] before = embed("a text").get(0);
    TokenRun run = store.tokenizer().tokenize(List.of("a text")).get(0).runs().get(0);
    EmbeddingModel model = store.load("test");
    try (RunOptions options = new RunOptions()) {
      options.setTerminate(true);

      assertThatThrownBy(() -> model.run(run, options))
          .isInstanceOf(OrtException.class)
          .hasMessageContaining("terminate");
    }
    assertThat(embed("a text").get(0)).isEqualTo(before);
  }

  @Test
  void aClosedModelRefusesToRun() throws Exception {
    ModelStore other = ModelStore.open();
    EmbeddingModel model = other.load("closed");
    TokenRun run = other.tokenizer().tokenize(List.of("a text")).get(0).runs().get(0);
    other.close();
    other.close();

    assertThatThrownBy(() -> model.run(run, new RunOptions()))
        .isInstanceOf(ModelClosedException.class);
    assertThatThrownBy(() -> other.load("closed")).isInstanceOf(ModelClosedException.class);
  }

  @Test
  void aTextLongerThanTheModelReadsIsRefusedByItsNumber() {
    String tooLong = "word ".repeat(511);

    assertThatThrownBy(() -> store.tokenizer().tokenize(List.of("short", tooLong)))
        .isInstanceOf(BadInputException.class)
        .hasMessageContaining("texts[1] has 513 tokens")
        .hasMessageContaining("512");
    assertThat(store.tokenizer().tokenize(List.of("word ".repeat(510)))).hasSize(1);
  }
}
