package dev.vgpu.samples.inference;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.onnxruntime.OrtException;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

final class EmbedCallTest {
  private static ModelStore store;
  private static EmbeddingModel model;
  private static TokenBatch batch;

  @BeforeAll
  static void open() throws Exception {
    store = ModelStore.open();
    model = store.load("test");
    List<String> sentences = Resources.lines("corpus.txt").subList(0, OfflineCorpus.BATCH);
    batch = store.tokenizer().tokenize(sentences).get(0);
  }

  @AfterAll
  static void close() {
    store.close();
  }

  @Test
  void aCancelBetweenAttemptsIsForgotten() throws Exception {
    EmbedCall call = new EmbedCall(model, batch);

    call.cancel();

    assertThat(call.call()).hasDimensions(OfflineCorpus.BATCH, EmbeddingModel.DIMENSIONS);
    call.cancel();
  }

  @Test
  void aCancelledCallGoesOnWhereItWasAndGivesTheSame() throws Exception {
    float[][] expected = new EmbedCall(model, batch).call();
    ExecutorService threads = Executors.newSingleThreadExecutor();
    try {
      EmbedCall call = new EmbedCall(model, batch);
      int cancelled = 0;
      float[][] found = null;
      while (found == null) {
        CountDownLatch started = new CountDownLatch(1);
        Future<float[][]> attempt =
            threads.submit(
                () -> {
                  started.countDown();
                  return call.call();
                });
        started.await();
        for (int i = 0; i < 20_000 * cancelled; i++) {
          Thread.onSpinWait(); // cancels later each time, so that the call ends
        }
        call.cancel();
        try {
          found = attempt.get();
        } catch (ExecutionException e) {
          assertThat(e).hasCauseInstanceOf(OrtException.class);
          cancelled++;
        }
      }
      assertThat(Arrays.deepEquals(found, expected)).isTrue();
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void aCallOfAClosedModelFails() throws Exception {
    ModelStore other = ModelStore.open();
    EmbedCall call = new EmbedCall(other.load("closed"), batch);
    other.close();

    assertThatThrownBy(call::call).isInstanceOf(ModelClosedException.class);
  }
}
