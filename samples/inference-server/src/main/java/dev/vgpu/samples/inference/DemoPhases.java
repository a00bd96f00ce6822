package dev.vgpu.samples.inference;

import dev.vgpu.GpuPool;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Starts and measures the phases of {@code ./vgpu demo}. Safe for use by several threads. */
final class DemoPhases {
  private final InferenceServer server;
  private final GpuPool pool;
  private final ModelStore store;
  private final List<String> corpus;
  private volatile @Nullable Phase phase;

  /** The phase that runs, or ran last. */
  private record Phase(
      DemoPhaseRequest request, DemoSpans spans, Map<DemoTenant, ServedModel> tenants) {}

  /** The body of {@code POST /demo/calibrate}. */
  record CalibrateRequest(List<String> texts, int runs) {}

  /**
   * Its answer: how long the model alone takes for the texts, without tokenising and without
   * sharing.
   */
  record Calibration(long medianNs, long minNs, long maxNs, int batches) {}

  DemoPhases(InferenceServer server, GpuPool pool, ModelStore store, List<String> corpus) {
    this.server = server;
    this.pool = pool;
    this.store = store;
    this.corpus = corpus;
  }

  /** Ends the running phase and starts another; it runs when this returns. */
  void start(DemoPhaseRequest request) throws Exception {
    request.check();
    server.serve(() -> open(request));
  }

  private Serving open(DemoPhaseRequest request) throws Exception {
    // Loads models that no earlier phase has loaded, so that the phase's time covers only its
    // calls.
    for (DemoPhaseRequest.Model model : request.models()) {
      store.load(model.name());
    }
    for (DemoPhaseRequest.Job job : request.offline()) {
      store.load(job.name());
    }
    DemoSpans spans = new DemoSpans();
    Map<DemoTenant, ServedModel> tenants = new LinkedHashMap<>();
    try {
      Map<String, ServedModel> models = new LinkedHashMap<>();
      for (DemoPhaseRequest.Model model : request.models()) {
        models.put(model.name(), open(model.request(), request.sharing(), spans, tenants));
      }
      List<ServedModel> batches = new ArrayList<>();
      for (DemoPhaseRequest.Job job : request.offline()) {
        batches.add(open(job.request(), request.sharing(), spans, tenants));
      }
      List<OfflineCorpus> jobs = new ArrayList<>();
      for (int i = 0; i < batches.size(); i++) {
        int workers = request.offline().get(i).workers();
        jobs.add(new OfflineCorpus(batches.get(i), corpus, workers, vectors -> {}));
      }
      phase = new Phase(request, spans, tenants);
      return new Serving(models, jobs);
    } catch (Throwable e) {
      tenants.values().forEach(ServedModel::close);
      throw e;
    }
  }

  private ServedModel open(
      VirtualGpuRequest request,
      DemoPhaseRequest.Sharing sharing,
      DemoSpans spans,
      Map<DemoTenant, ServedModel> tenants)
      throws Exception {
    DemoTenant tenant = new DemoTenant(tenants.size(), request, spans);
    ServedModel model;
    if (sharing == DemoPhaseRequest.Sharing.VGPU) {
      model = ServedModel.open(pool, request, store, tenant::noting);
    } else {
      DemoUnshared turns = new DemoUnshared(request.maxConcurrentCalls());
      model = new ServedModel(request.name(), store, tenant.noting(turns), turns::close);
    }
    tenants.put(tenant, model);
    return model;
  }

  /** {@return the phase's results so far; null if there was no phase yet} */
  @Nullable DemoPhaseReport report() {
    Phase now = phase;
    if (now == null) {
      return null;
    }
    long elapsedNs = now.spans().elapsedNs();
    List<DemoSpans.Span> sorted = now.spans().sorted();
    List<DemoPhaseReport.Tenant> tenants = new ArrayList<>();
    now.tenants()
        .forEach((tenant, model) -> tenants.add(DemoPhaseReport.Tenant.of(tenant, model, sorted)));
    return new DemoPhaseReport(
        now.request().name(),
        now.request().sharing(),
        elapsedNs,
        tenants,
        sorted.stream()
            .map(span -> new long[] {span.tenant(), span.startNs(), span.endNs()})
            .toList());
  }

  /** Measures the model alone; serving anything meanwhile would distort the result. */
  Calibration calibrate(CalibrateRequest request) throws Exception {
    new Routes.EmbedRequest(request.texts()).check();
    if (request.runs() < 1 || request.runs() > 1_000) {
      throw new BadInputException("there are 1 to 1000 runs, not " + request.runs());
    }
    EmbeddingModel model = store.load("online");
    List<TokenBatch> batches = store.tokenizer().tokenize(request.texts());
    long[] times = new long[request.runs()];
    for (int run = 0; run < request.runs(); run++) {
      long startNs = NanoClock.now();
      for (TokenBatch batch : batches) {
        new EmbedCall(model, batch).call();
      }
      times[run] = NanoClock.now() - startNs;
    }
    Arrays.sort(times);
    return new Calibration(
        times[times.length / 2], times[0], times[times.length - 1], batches.size());
  }
}
