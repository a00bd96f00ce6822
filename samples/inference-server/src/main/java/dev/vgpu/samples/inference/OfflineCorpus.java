package dev.vgpu.samples.inference;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The batch job: embeds a corpus from the first sentence to the last, repeatedly. Under a virtual
 * GPU of class {@code OFFLINE} it uses the time that the online models leave. When one of them gets
 * a request, the job's running call is cancelled and repeated; this code does not notice.
 */
final class OfflineCorpus implements AutoCloseable {
  /** The number of sentences that are prepared and stored together. */
  static final int BATCH = 32;

  private static final Logger LOG = LoggerFactory.getLogger(OfflineCorpus.class);

  private final ServedModel model;
  private final List<String> sentences;
  private final Consumer<float[][]> store;
  private final AtomicLong next = new AtomicLong();
  private final List<Thread> workers = new ArrayList<>();
  private volatile boolean closed;

  /**
   * Starts the job.
   *
   * @param model the model to run; closed with the job
   * @param sentences at least one
   * @param workers the number of threads; two, so that one prepares a batch while the other's runs
   * @param store receives the vectors of each batch, on any of the threads
   */
  OfflineCorpus(ServedModel model, List<String> sentences, int workers, Consumer<float[][]> store) {
    this.model = model;
    this.sentences = List.copyOf(sentences);
    this.store = store;
    for (int i = 0; i < workers; i++) {
      Thread worker = new Thread(this::work, model.name() + "-" + i);
      worker.setDaemon(true);
      this.workers.add(worker);
      worker.start();
    }
  }

  /** {@return the model that the job runs} */
  ServedModel model() {
    return model;
  }

  private void work() {
    try {
      while (!closed) {
        for (TokenBatch batch : model.tokenize(nextSentences())) { // outside the turn
          store.accept(model.embed(batch));
        }
      }
    } catch (Exception | Error e) {
      if (!closed) {
        LOG.error("an offline worker ended: job={}", model.name(), e);
      }
    }
  }

  private List<String> nextSentences() {
    long first = next.getAndAdd(BATCH);
    List<String> batch = new ArrayList<>(BATCH);
    for (long i = first; i < first + BATCH; i++) {
      batch.add(sentences.get((int) (i % sentences.size())));
    }
    return batch;
  }

  /** Starts closing. Does not wait. */
  void stop() {
    closed = true; // first, so that the workers know that the failures that follow mean the end
    model.stop();
  }

  /** Ends the job within about a second. The results of running batches are lost. */
  @Override
  public void close() {
    stop();
    model.close();
    boolean interrupted = false;
    for (Thread worker : workers) {
      try {
        worker.join(1_000);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
