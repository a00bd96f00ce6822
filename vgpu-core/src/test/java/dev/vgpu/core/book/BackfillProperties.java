package dev.vgpu.core.book;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.pool.Pools;
import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.core.turn.InProcessGate;
import dev.vgpu.core.turn.TenantGate;
import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.Size;
import org.jspecify.annotations.Nullable;

/**
 * Which waiting request is served when. Requests are served by class, then arrival. A request
 * served out of order never delays the first in line, whatever is given back, and whenever, unless
 * a more urgent one comes later. Requests ask for one or more GPUs.
 */
@Tag("property")
class BackfillProperties {
  /** The terms of a request. Percent 0 means best effort; a GPU beyond the last means any. */
  record Terms(PreemptionClass cls, int percent, int mebibytes, int gpu, int count) {}

  /** A request arrives and waits, or a granted one, given by its number, is given back. */
  record Step(boolean asks, Terms terms, int which) {}

  @Provide
  Arbitrary<Step> steps() {
    Arbitrary<Terms> terms =
        Combinators.combine(
                Arbitraries.of(PreemptionClass.values()),
                Arbitraries.of(0, 10, 30, 50, 80, 100),
                Arbitraries.of(10, 200, 400, 600, 1000),
                Arbitraries.integers().between(0, 5),
                Arbitraries.of(1, 1, 1, 2, 3))
            .as(Terms::new);
    return Combinators.combine(
            Arbitraries.of(true, true, false), terms, Arbitraries.integers().between(0, 20))
        .as(Step::new);
  }

  @Provide
  Arbitrary<Integer> sizes() {
    return Arbitraries.integers().between(1, 4);
  }

  /** The book of a node, the waiting requests, and what was granted to them. */
  private static final class Run implements AutoCloseable {
    private final Node node;
    private final LeaseTable table;
    private final Placement placement;
    private final List<PendingRequest> waiting = new ArrayList<>();
    private final List<Booking> held = new ArrayList<>();
    private final List<PendingRequest> granted = new ArrayList<>();

    /** What was granted since the first has been first, in order. */
    private final List<Booking> since = new ArrayList<>();

    private @Nullable PendingRequest front;

    Run(int size) {
      List<Pools.TestGpu> gpus = Pools.gpus(size);
      PoolSettings settings =
          PoolSettings.from(GpuPoolOptions.builder().gpus(List.copyOf(gpus)).build());
      node = new Node(settings, NanoClock.SYSTEM, released -> {});
      node.manage(List.copyOf(gpus), settings);
      Enforcements none = Enforcements.none("this is a test");
      table = new LeaseTable(node, node.newSlots(), none, null, null);
      placement = new Placement(table.books(), new BackendChoices(none, table.work()));
    }

    VirtualGpuRequest request(Terms terms) {
      List<GpuBook> books = table.books();
      VirtualGpuRequest.Builder builder =
          VirtualGpuRequest.builder()
              .memory(MemorySize.ofMebibytes(terms.mebibytes()))
              .preemptionClass(terms.cls())
              .gpuCount(Math.min(terms.count(), books.size()));
      if (terms.percent() > 0) {
        builder.policy(SharePolicy.BURST_SHARE).computePercent(terms.percent());
      }
      if (terms.gpu() < books.size()) {
        builder.gpu(books.get(terms.gpu()).gpu.id());
      }
      return builder.build();
    }

    List<PendingRequest> ask(Terms terms) {
      return take(new Step(true, terms, 0));
    }

    /** Takes a step, and returns the requests that were granted by it, in order. */
    List<PendingRequest> take(Step step) {
      granted.clear();
      if (step.asks()) {
        PendingRequest asked =
            new PendingRequest(new Asked(request(step.terms()), new Owner()), granted::add);
        waiting.add(asked);
        table.enqueue(asked);
      } else if (!held.isEmpty()) {
        Booking closed = held.remove(step.which() % held.size());
        since.remove(closed);
        table.ends().ended(closed);
      }
      waiting.removeAll(granted);
      for (PendingRequest each : granted) {
        held.add(each.booking());
        since.add(each.booking());
      }
      PendingRequest now = first();
      if (now != front) {
        front = now;
        since.clear();
      }
      return List.copyOf(granted);
    }

    /** The first in line. These tests have too few steps to reach the limit on overtaking. */
    @Nullable PendingRequest first() {
      return waiting.stream()
          .min(Comparator.comparing(each -> urgency(each.preemptionClass())))
          .orElse(null);
    }

    /**
     * Whether one that was served out of turn delays the first: the first would fit without it and
     * those served out of turn after it, and would not fit without the more urgent ones that were
     * served after it. Nobody could know of these.
     */
    boolean isDelayed(PendingRequest first) {
      for (int i = 0; i < since.size(); i++) {
        List<Booking> from = since.subList(i, since.size());
        if (!isUrgent(since.get(i), first)
            && fitsWithout(outOfTurn(from, first), first)
            && !fitsWithout(urgent(from, first), first)) {
          return true;
        }
      }
      return false;
    }

    private static boolean isUrgent(Booking booking, PendingRequest first) {
      return booking.request().preemptionClass().isMoreUrgentThan(first.preemptionClass());
    }

    static List<Booking> urgent(List<Booking> bookings, PendingRequest first) {
      return bookings.stream().filter(each -> isUrgent(each, first)).toList();
    }

    static List<Booking> outOfTurn(List<Booking> bookings, PendingRequest first) {
      return bookings.stream().filter(each -> !isUrgent(each, first)).toList();
    }

    private boolean fitsWithout(List<Booking> bookings, PendingRequest request) {
      bookings.forEach(booking -> booking.books.forEach(s -> s.giveBack(booking.request())));
      boolean fits = placement.place(request.asked.request()) != null;
      bookings.forEach(booking -> booking.books.forEach(s -> s.take(booking.request())));
      return fits;
    }

    @Override
    public void close() {
      table.meter().close();
      node.shutDown();
    }
  }

  private static int urgency(PreemptionClass cls) {
    return switch (cls) {
      case ONLINE -> 0;
      case NEARLINE -> 1;
      case OFFLINE -> 2;
    };
  }

  @Property(tries = 80)
  void whoIsServedOutOfTurnNeverDelaysTheFirst(
      @ForAll("sizes") int size, @ForAll @Size(max = 60) List<@From("steps") Step> steps) {
    try (Run run = new Run(size)) {
      for (Step step : steps) {
        List<PendingRequest> ignored = run.take(step);
        PendingRequest first = run.first();
        if (first != null) {
          assertThat(run.isDelayed(first)).as("after %s", step).isFalse();
        }
      }
    }
  }

  /** The room beside the first is exactly used up by one served out of turn and a later ONLINE. */
  @Example
  void aMoreUrgentRequestThatComesLaterDelaysTheFirst() {
    PreemptionClass online = PreemptionClass.ONLINE;
    PreemptionClass nearline = PreemptionClass.NEARLINE;
    try (Run run = new Run(3)) {
      run.ask(new Terms(online, 0, 600, 0, 1));
      run.ask(new Terms(online, 0, 410, 1, 1));
      assertThat(run.ask(new Terms(nearline, 0, 600, 0, 2))).isEmpty();
      assertThat(run.ask(new Terms(nearline, 0, 400, 2, 1))).hasSize(1);
      assertThat(run.ask(new Terms(online, 0, 10, 2, 1))).hasSize(1);
      List<PendingRequest> ignored = run.take(new Step(false, new Terms(online, 0, 10, 0, 1), 0));
      PendingRequest first = run.first();
      assertThat(first).isNotNull();
      assertThat(run.fitsWithout(Run.outOfTurn(run.since, first), first)).isTrue();
      assertThat(run.isDelayed(first)).isFalse();
    }
  }

  @Property(tries = 80)
  void nobodyWaitsWhoCouldBeServedWithoutDelayingTheFirst(
      @ForAll("sizes") int size, @ForAll @Size(max = 60) List<@From("steps") Step> steps) {
    try (Run run = new Run(size)) {
      for (Step step : steps) {
        List<PendingRequest> ignored = run.take(step);
        PendingRequest first = run.first();
        for (PendingRequest each : run.waiting) {
          VirtualGpuRequest request = each.asked.request();
          assertThat(run.placement.place(request) != null && each == first).isFalse();
          if (first != null && each != first) {
            assertThat(run.placement.placeBeside(request, first.asked.request())).isNull();
          }
        }
      }
    }
  }

  @Property(tries = 80)
  void gangsGetAllTheirGpusOrNoneAndNothingIsOvercommitted(
      @ForAll("sizes") int size, @ForAll @Size(max = 60) List<@From("steps") Step> steps) {
    try (Run run = new Run(size)) {
      for (Step step : steps) {
        for (PendingRequest granted : run.take(step)) {
          Booking booking = granted.booking();
          VirtualGpuRequest request = booking.request();
          assertThat(new HashSet<>(booking.gpus())).hasSize(request.gpuCount());
          assertThat(booking.gpus()).hasSize(request.gpuCount());
          request.gpu().ifPresent(gpu -> assertThat(booking.gpus()).contains(gpu));
        }
        for (GpuBook book : run.table.books()) {
          assertThat(percent(book, false)).isBetween(0, 100);
          assertThat(percent(book, true)).isBetween(0, 100);
          assertThat(bytes(book)).isBetween(0L, book.gpu.usableMemory().bytes());
        }
      }
      List.copyOf(run.held).forEach(run.table.ends()::ended);
      for (int i = 0; i < 1000 && !run.table.bookings().isEmpty(); i++) {
        run.waiting.removeIf(PendingRequest::isSettled);
        run.table.bookings().forEach(run.table.ends()::ended); // those that waited were granted
      }
      assertThat(run.waiting).isEmpty();
      run.table.books().forEach(book -> assertThat(bytes(book)).isZero());
    }
  }

  private static int percent(GpuBook book, boolean offline) {
    return book.bookings.stream()
        .map(Booking::request)
        .filter(r -> (r.preemptionClass() == PreemptionClass.OFFLINE) == offline)
        .mapToInt(r -> r.computePercent().orElse(0))
        .sum();
  }

  private static long bytes(GpuBook book) {
    return book.bookings.stream().mapToLong(each -> each.request().memory().bytes()).sum();
  }

  @Property(tries = 40)
  void equalsAreServedByClassThenArrival(
      @ForAll @Size(min = 2, max = 30) List<PreemptionClass> arrivals) {
    try (Run run = new Run(1)) {
      List<PendingRequest> first =
          run.take(new Step(true, new Terms(PreemptionClass.ONLINE, 0, 1000, 9, 1), 0));
      assertThat(first).hasSize(1);
      arrivals.forEach(
          cls -> assertThat(run.take(new Step(true, new Terms(cls, 0, 1000, 9, 1), 0))).isEmpty());
      List<PendingRequest> expected = new ArrayList<>(run.waiting);
      expected.sort(Comparator.comparing(each -> urgency(each.preemptionClass())));
      List<PendingRequest> served = new ArrayList<>();
      for (int i = 0; i < arrivals.size(); i++) {
        served.addAll(run.take(new Step(false, new Terms(PreemptionClass.ONLINE, 0, 1, 0, 1), 0)));
      }
      assertThat(served).isEqualTo(expected);
    }
  }

  /** Makes requests; what it is granted makes no calls. */
  private static final class Owner implements Asked.Claimant {
    @Override
    public Object owner() {
      return this;
    }

    @Override
    public boolean isClosed() {
      return false;
    }

    @Override
    public String ownerKey() {
      return "";
    }

    @Override
    public ProcessIdentity process() {
      return ProcessIdentity.current();
    }

    @Override
    public BookedCalls calls(String id, List<GpuBook> on, VirtualGpuRequest request) {
      return new NoCalls();
    }
  }

  private static final class NoCalls implements BookedCalls, TurnGate {
    @Override
    public TurnGate gate() {
      return this;
    }

    @Override
    public @Nullable InProcessGate localGate() {
      return null;
    }

    @Override
    public void booked(Booking booking, TenantGate tenant) {}

    @Override
    public UsageReading usage() {
      return UsageReading.NONE;
    }

    @Override
    public boolean isClosed() {
      return false;
    }

    @Override
    public @Nullable String tryResize(VirtualGpuRequest request, TenantGate tenant) {
      return null;
    }

    @Override
    public void released() {}

    @Override
    public void open() {}

    @Override
    public boolean shut() {
      return true;
    }

    @Override
    public int preempt() {
      return 0;
    }

    @Override
    public boolean hasWork() {
      return false;
    }

    @Override
    public long gpuTimeNs(long nowNs) {
      return 0;
    }

    @Override
    public void contended(boolean contended) {}
  }
}
