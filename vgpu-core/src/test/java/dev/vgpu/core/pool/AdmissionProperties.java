package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.PhysicalGpu;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import net.jqwik.api.Tuple;
import net.jqwik.api.constraints.Size;

/** What a pool grants and refuses, for any sequence of requests. */
@Tag("property")
class AdmissionProperties {
  private static final int USABLE_MIB = 900;

  private record Gpu(GpuId id) implements PhysicalGpu {
    @Override
    public String model() {
      return "test";
    }

    @Override
    public MemorySize memory() {
      return MemorySize.ofMebibytes(1000);
    }

    @Override
    public MemorySize usableMemory() {
      return MemorySize.ofMebibytes(USABLE_MIB);
    }

    @Override
    public String provider() {
      return "test";
    }
  }

  enum Kind {
    ACQUIRE,
    TRY_ACQUIRE,
    RESIZE,
    CLOSE
  }

  /** A request; percent 0: best effort; gpu beyond the last: any. */
  record Terms(PreemptionClass cls, SharePolicy policy, int percent, int mebibytes, int gpu) {
    VirtualGpuRequest request(List<Gpu> gpus) {
      VirtualGpuRequest.Builder builder =
          VirtualGpuRequest.builder()
              .memory(MemorySize.ofMebibytes(mebibytes))
              .preemptionClass(cls);
      if (policy != SharePolicy.BEST_EFFORT) {
        builder.policy(policy).computePercent(percent);
      }
      if (gpu < gpus.size()) {
        builder.gpu(gpus.get(gpu).id());
      }
      return builder.build();
    }
  }

  /** A step; resize and close choose a granted virtual GPU by {@code which}. */
  record Step(Kind kind, Terms terms, int which) {}

  @Provide
  Arbitrary<Step> steps() {
    Arbitrary<Terms> terms =
        Combinators.combine(
                Arbitraries.of(PreemptionClass.values()),
                Arbitraries.of(SharePolicy.values()),
                Arbitraries.frequencyOf(
                    Tuple.of(4, Arbitraries.integers().between(1, 100)),
                    Tuple.of(1, Arbitraries.of(25, 50, 100))),
                Arbitraries.frequencyOf(
                    Tuple.of(5, Arbitraries.integers().between(1, 300)),
                    Tuple.of(1, Arbitraries.of(450, 899, 900, 901, 1000))),
                Arbitraries.integers().between(0, 5))
            .as(Terms::new);
    Arbitrary<Kind> kinds =
        Arbitraries.frequency(
            Tuple.of(4, Kind.ACQUIRE),
            Tuple.of(2, Kind.TRY_ACQUIRE),
            Tuple.of(3, Kind.RESIZE),
            Tuple.of(2, Kind.CLOSE));
    return Combinators.combine(kinds, terms, Arbitraries.integers().between(0, 15)).as(Step::new);
  }

  /** A pool, the virtual GPUs granted through it, and the results of the steps. */
  private static final class Run implements AutoCloseable {
    private static int made;

    final List<Gpu> gpus = new ArrayList<>();
    final GpuPool pool;
    final List<VirtualGpu> granted = new ArrayList<>();

    Run(int size) {
      for (int i = 0; i < size; i++) {
        gpus.add(new Gpu(new GpuId("admission-" + ++made)));
      }
      pool =
          GpuPool.open(
              GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).gpus(gpus).build());
    }

    /** Takes a step; returns the GPU of the grant, or what was thrown. */
    String take(Step step) throws InterruptedException {
      VirtualGpuRequest request = step.terms().request(gpus);
      try {
        return switch (step.kind()) {
          case ACQUIRE -> granted(Optional.of(pool.acquire(request)));
          case TRY_ACQUIRE -> granted(pool.tryAcquire(request, Duration.ZERO));
          case RESIZE -> {
            if (!granted.isEmpty()) {
              chosen(step).resize(request);
            }
            yield "resized";
          }
          case CLOSE -> {
            if (!granted.isEmpty()) {
              chosen(step).close();
            }
            yield "closed";
          }
        };
      } catch (GpuCapacityException e) {
        return "refused";
      } catch (IllegalArgumentException | IllegalStateException e) {
        return e.getClass().getSimpleName();
      }
    }

    private String granted(Optional<VirtualGpu> gpu) {
      gpu.ifPresent(granted::add);
      return gpu.map(g -> "granted on " + index(g.gpu().id())).orElse("refused");
    }

    VirtualGpu chosen(Step step) {
      return granted.get(step.which() % granted.size());
    }

    int index(GpuId id) {
      return gpus.stream().map(Gpu::id).toList().indexOf(id);
    }

    /** The leases, as text that does not depend on the names of this run's GPUs. */
    List<String> held() {
      return pool.leases().stream()
          .map(l -> l.id() + " " + index(l.gpu()) + " " + terms(l))
          .toList();
    }

    private static String terms(GpuLease lease) {
      VirtualGpuRequest request = lease.request();
      return request.policy()
          + " "
          + request.computePercent()
          + " "
          + request.memory()
          + " "
          + request.preemptionClass();
    }

    /** The percent of a GPU that is guaranteed to offline tenants, or to the others. */
    int percent(GpuId gpu, boolean offline) {
      return pool.leases().stream()
          .filter(lease -> lease.gpu().equals(gpu))
          .map(GpuLease::request)
          .filter(r -> (r.preemptionClass() == PreemptionClass.OFFLINE) == offline)
          .mapToInt(r -> r.computePercent().orElse(0))
          .sum();
    }

    long bytes(GpuId gpu) {
      return pool.leases().stream()
          .filter(lease -> lease.gpu().equals(gpu))
          .mapToLong(lease -> lease.request().memory().bytes())
          .sum();
    }

    /** Whether a GPU has room for a request after another one is given back. */
    boolean fits(GpuId gpu, VirtualGpuRequest asked, Optional<VirtualGpuRequest> givenBack) {
      boolean offline = asked.preemptionClass() == PreemptionClass.OFFLINE;
      int percent = percent(gpu, offline) + asked.computePercent().orElse(0);
      long bytes = bytes(gpu) + asked.memory().bytes();
      if (givenBack.isPresent()) {
        VirtualGpuRequest back = givenBack.get();
        boolean sameLevel = (back.preemptionClass() == PreemptionClass.OFFLINE) == offline;
        percent -= sameLevel ? back.computePercent().orElse(0) : 0;
        bytes -= back.memory().bytes();
      }
      return percent <= 100 && bytes <= MemorySize.ofMebibytes(USABLE_MIB).bytes();
    }

    @Override
    public void close() {
      pool.close();
    }
  }

  @Property(tries = 300)
  void nothingIsOvercommitted(
      @ForAll("sizes") int size, @ForAll @Size(max = 40) List<@From("steps") Step> all)
      throws InterruptedException {
    try (Run run = new Run(size)) {
      for (Step step : all) {
        run.take(step);
        for (Gpu gpu : run.gpus) {
          assertThat(run.percent(gpu.id(), false)).isBetween(0, 100);
          assertThat(run.percent(gpu.id(), true)).isBetween(0, 100);
          assertThat(run.bytes(gpu.id())).isBetween(0L, gpu.usableMemory().bytes());
        }
      }
    }
  }

  @Provide
  Arbitrary<Integer> sizes() {
    return Arbitraries.integers().between(1, 3);
  }

  @Property(tries = 300)
  void requestIsGrantedExactlyWhereThereIsRoom(
      @ForAll("sizes") int size, @ForAll @Size(max = 40) List<@From("steps") Step> all)
      throws InterruptedException {
    try (Run run = new Run(size)) {
      for (Step step : all) {
        VirtualGpuRequest asked = step.terms().request(run.gpus);
        String expected = expected(run, step, asked);
        String came = run.take(step);
        assertThat(came).as("%s", step).startsWith(expected);
        if (came.startsWith("granted")) {
          VirtualGpu gpu = run.granted.get(run.granted.size() - 1);
          assertThat(gpu.request()).hasToString(asked.toString());
          asked.gpu().ifPresent(id -> assertThat(gpu.gpu().id()).isEqualTo(id));
        }
      }
    }
  }

  private static String expected(Run run, Step step, VirtualGpuRequest asked) {
    if (step.kind() == Kind.CLOSE) {
      return "closed";
    }
    if (step.kind() == Kind.RESIZE) {
      if (run.granted.isEmpty()) {
        return "resized";
      }
      VirtualGpu gpu = run.chosen(step);
      boolean elsewhere = asked.gpu().isPresent() && !asked.gpu().get().equals(gpu.gpu().id());
      if (elsewhere) {
        return gpu.isClosed() ? "Illegal" : "IllegalArgumentException";
      }
      if (gpu.isClosed()) {
        return "IllegalStateException";
      }
      Optional<VirtualGpuRequest> before = Optional.of(gpu.request());
      return run.fits(gpu.gpu().id(), asked, before) ? "resized" : "refused";
    }
    if (asked.memory().compareTo(MemorySize.ofMebibytes(USABLE_MIB)) > 0) {
      return "IllegalArgumentException";
    }
    boolean fits =
        run.gpus.stream()
            .map(Gpu::id)
            .filter(id -> asked.gpu().isEmpty() || asked.gpu().get().equals(id))
            .anyMatch(id -> run.fits(id, asked, Optional.empty()));
    return fits ? "granted" : "refused";
  }

  @Property(tries = 300)
  void whatIsRefusedChangesNothing(
      @ForAll("sizes") int size, @ForAll @Size(max = 40) List<@From("steps") Step> all)
      throws InterruptedException {
    try (Run run = new Run(size)) {
      for (Step step : all) {
        List<String> before = run.held();
        List<VirtualGpuRequest> requests = run.granted.stream().map(VirtualGpu::request).toList();
        String came = run.take(step);
        if (came.equals("refused") || came.startsWith("Illegal")) {
          assertThat(run.held()).isEqualTo(before);
          assertThat(run.granted.stream().map(VirtualGpu::request).toList()).isEqualTo(requests);
        }
      }
    }
  }

  @Property(tries = 300)
  void closingAllRestoresTheStartState(
      @ForAll("sizes") int size, @ForAll @Size(max = 40) List<@From("steps") Step> all)
      throws InterruptedException {
    try (Run run = new Run(size)) {
      for (Step step : all) {
        run.take(step);
      }
      run.granted.forEach(VirtualGpu::close);
      assertThat(run.pool.leases()).isEmpty();
      for (Gpu gpu : run.gpus) {
        for (PreemptionClass cls : PreemptionClass.values()) {
          Terms whole = new Terms(cls, SharePolicy.FIXED_SHARE, 100, USABLE_MIB, 3);
          VirtualGpuRequest request = whole.request(run.gpus).toBuilder().gpu(gpu.id()).build();
          run.pool.acquire(request).close();
        }
      }
    }
  }

  @Property(tries = 300)
  void theSameStepsGiveTheSamePlacements(
      @ForAll("sizes") int size, @ForAll @Size(max = 40) List<@From("steps") Step> all)
      throws InterruptedException {
    try (Run first = new Run(size);
        Run second = new Run(size)) {
      for (Step step : all) {
        assertThat(second.take(step)).isEqualTo(first.take(step));
        assertThat(second.held()).isEqualTo(first.held());
      }
    }
  }
}
