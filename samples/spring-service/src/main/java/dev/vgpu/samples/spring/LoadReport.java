package dev.vgpu.samples.spring;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;

/** The rounds of a {@link Load}, and what they come to. Confined to one thread. */
final class LoadReport {
  /** That of all figures. */
  static final Locale LOCALE = Locale.ROOT;

  private static final int TAIL = 99;

  private final List<Round> rounds = new ArrayList<>();

  /**
   * One replay, or a time without one.
   *
   * @param seconds how long it took
   * @param answers what became of the requests
   * @param chatGpuSeconds the GPU time of the model that answers them
   * @param job what the job did meanwhile
   */
  record Phase(
      double seconds, ChatClient.Answers answers, double chatGpuSeconds, BatchRows.Progress job) {
    Phase with(BatchRows.Progress other) {
      return new Phase(seconds, answers, chatGpuSeconds, other);
    }

    /** {@return the part of the time in which the model had the GPU} */
    double chatBusy() {
      return chatGpuSeconds / seconds;
    }

    double jobBusy() {
      return job.gpuSeconds() / seconds;
    }

    double batchesPerSecond() {
      return job.batches() / seconds;
    }

    double tailMs() {
      return answers.percentileMs(TAIL);
    }
  }

  /**
   * What is compared with one another.
   *
   * @param alone the requests without a job
   * @param jobAlone the job without requests
   * @param beside the requests beside the job
   * @param aloneAgain the requests without a job, after that
   * @param uncontrolled the requests beside the job without a virtual GPU
   */
  record Round(Phase alone, Phase jobAlone, Phase beside, Phase aloneAgain, Phase uncontrolled) {
    double aloneTailMs() {
      return (alone.tailMs() + aloneAgain.tailMs()) / 2;
    }

    double besideToAlone() {
      return beside.tailMs() / aloneTailMs();
    }

    double uncontrolledToAlone() {
      return uncontrolled.tailMs() / aloneTailMs();
    }

    double againToAlone() {
      return aloneAgain.tailMs() / alone.tailMs();
    }

    /** {@return the finished batches, as a part of those that fit in what the requests leave} */
    double ofWhatIsLeft(Phase phase) {
      return phase.batchesPerSecond() / (jobAlone.batchesPerSecond() * (1 - phase.chatBusy()));
    }

    /** {@return the part of the GPU's time that the finished batches took} */
    double finished() {
      return beside.batchesPerSecond() / jobAlone.batchesPerSecond() * jobAlone.jobBusy();
    }

    /** {@return the part of the GPU's time that was spent on batches begun again} */
    double lost() {
      return beside.jobBusy() - finished();
    }

    /** {@return the part of the time in which neither had the GPU} */
    double nobody() {
      return 1 - beside.chatBusy() - beside.jobBusy();
    }
  }

  static BatchRows.Progress between(BatchRows.Progress before, BatchRows.Progress after) {
    return new BatchRows.Progress(
        after.batches() - before.batches(),
        after.gpuSeconds() - before.gpuSeconds(),
        after.preemptions() - before.preemptions());
  }

  void add(Round round) {
    rounds.add(round);
  }

  /** Prints the medians of the rounds. */
  void print() {
    print("chat alone", Round::alone);
    print("chat beside the job", Round::beside);
    print("chat alone again", Round::aloneAgain);
    print("chat beside the job, uncontrolled", Round::uncontrolled);
    System.out.printf(
        LOCALE,
        "p99 to that alone: beside the job %s, alone again %s, uncontrolled %s%n",
        spread(Round::besideToAlone),
        spread(Round::againToAlone),
        spread(Round::uncontrolledToAlone));
    System.out.printf(
        LOCALE,
        "job: %.0f batches/s alone, %.0f beside chat: %.0f %% of what chat leaves (uncontrolled"
            + " %.0f %%)%n",
        median(round -> round.jobAlone.batchesPerSecond()),
        median(round -> round.beside.batchesPerSecond()),
        100 * median(round -> round.ofWhatIsLeft(round.beside)),
        100 * median(round -> round.ofWhatIsLeft(round.uncontrolled)));
    System.out.printf(
        LOCALE,
        "the GPU's time beside the job: chat %.0f %%, finished batches %.0f %%, batches begun"
            + " again %.0f %% (%.0f/s), nobody %.0f %%%n",
        100 * median(round -> round.beside.chatBusy()),
        100 * median(Round::finished),
        100 * median(Round::lost),
        median(round -> round.beside.job().preemptions() / round.beside.seconds()),
        100 * median(Round::nobody));
  }

  private void print(String title, Function<Round, Phase> phase) {
    System.out.printf(
        LOCALE,
        "%-34s %d answered, %d failed, %.0f %% of the GPU, p50 %.1f ms, p99 %.1f ms%n",
        title,
        rounds.stream().mapToInt(round -> phase.apply(round).answers().latenciesMs().size()).sum(),
        rounds.stream().mapToInt(round -> phase.apply(round).answers().failed()).sum(),
        100 * median(round -> phase.apply(round).chatBusy()),
        median(round -> phase.apply(round).answers().percentileMs(50)),
        median(round -> phase.apply(round).tailMs()));
  }

  private String spread(ToDoubleFunction<Round> value) {
    double[] sorted = rounds.stream().mapToDouble(value).sorted().toArray();
    return String.format(
        LOCALE,
        "%.2f (%.2f to %.2f)",
        sorted[sorted.length / 2],
        sorted[0],
        sorted[sorted.length - 1]);
  }

  private double median(ToDoubleFunction<Round> value) {
    double[] sorted = rounds.stream().mapToDouble(value).sorted().toArray();
    return sorted[sorted.length / 2];
  }
}
