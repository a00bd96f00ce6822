package dev.vgpu.samples.inference;

import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Everything that uses the GPU now.
 *
 * @param models the models that requests may address, by name
 * @param jobs the jobs that run without requests
 */
record Serving(Map<String, ServedModel> models, List<OfflineCorpus> jobs) implements AutoCloseable {
  Serving {
    models = Map.copyOf(models);
    jobs = List.copyOf(jobs);
  }

  /** {@return every model, including those of the jobs} */
  List<ServedModel> all() {
    return Stream.concat(models.values().stream(), jobs.stream().map(OfflineCorpus::model))
        .sorted(Comparator.comparing(ServedModel::name))
        .toList();
  }

  /** Ends the jobs and closes the models. Afterwards none of them uses the GPU. */
  @Override
  public void close() {
    jobs.forEach(OfflineCorpus::stop);
    models.values().forEach(ServedModel::stop);
    jobs.forEach(OfflineCorpus::close);
    models.values().forEach(ServedModel::close);
  }
}
