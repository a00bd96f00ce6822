package dev.vgpu.core.book;

import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.backend.BackendChoice.Verdict;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.discovery.InProcessBackend;
import dev.vgpu.core.wire.ChoiceValues;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.FailureMode;
import dev.vgpu.request.GpuPart;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Chooses which backend serves a request on a GPU: the cheapest one that meets the demands. Turns
 * inside JVMs are among the choices and cost nothing. Tenants of one GPU share either in turns or
 * in space, because a tenant without turns would break the shares of those with turns. Guarded by
 * the {@link LeaseTable}'s lock.
 */
public final class BackendChoices {
  private final Enforcements enforcements;
  private final BackendWork work;

  BackendChoices(Enforcements enforcements, BackendWork work) {
    this.enforcements = enforcements;
    this.work = work;
  }

  /**
   * The verdict on one backend on one GPU.
   *
   * @param backend null for turns inside JVMs
   * @param lacks how many demanded capabilities it lacks, if that is tolerated
   */
  record Candidate(
      @Nullable EnforcementBackend backend,
      Verdict verdict,
      String reason,
      int lacks,
      Optional<Capabilities> capabilities) {
    String name() {
      return backend == null ? InProcessBackend.NAME : backend.name();
    }

    int cost() {
      return backend == null ? 0 : backend.cost();
    }

    boolean isSpatial() {
      return backend != null && BackendChoices.isSpatial(backend);
    }

    BackendChoice with(GpuBook book, Verdict as, String because) {
      return new ChoiceValues.Choice(book.gpu.id(), name(), as, because, cost(), capabilities);
    }
  }

  static boolean isSpatial(EnforcementBackend backend) {
    return backend.capabilities().compute() == Capabilities.Compute.SPATIAL;
  }

  /** Whether the backend of this name gives tenants spatial parts of a GPU. */
  boolean isSpatial(Optional<String> name) {
    return name.flatMap(enforcements::named).filter(BackendChoices::isSpatial).isPresent();
  }

  /** Whether the backend of this name sets a part of a GPU aside for each of its leases. */
  boolean setsPartAside(Optional<String> name) {
    return name.flatMap(enforcements::named)
        .filter(EnforcementBackend::preparesWhenGranted)
        .isPresent();
  }

  /** The verdicts, cheapest first. A backend is loaded only when the stream reaches it. */
  private Stream<Candidate> candidates(GpuBook book, VirtualGpuRequest request) {
    return Stream.concat(
        Stream.of(inProcess(book, request)),
        Stream.of(0)
            .flatMap(once -> enforcements.backends().stream())
            .map(backend -> candidate(backend, book, request)));
  }

  /** The candidate that would serve a request on a GPU now; empty if there is none. */
  Optional<Candidate> choose(GpuBook book, VirtualGpuRequest request) {
    Stream<Candidate> possible =
        candidates(book, request).filter(each -> each.verdict == Verdict.POSSIBLE);
    return request.failureMode() == FailureMode.OPEN
        ? possible.min(Comparator.comparingInt(Candidate::lacks))
        : possible.findFirst();
  }

  /** Whether any backend could serve a request on a GPU, now or later. */
  boolean couldServe(GpuBook book, VirtualGpuRequest request) {
    return candidates(book, request).anyMatch(each -> each.verdict != Verdict.IMPOSSIBLE);
  }

  /** Whether a part may be set aside for a request when the work on another part has ended. */
  boolean mayHavePartSoon(GpuBook book, VirtualGpuRequest request) {
    return work.isOnParts()
        && candidates(book, request)
            .filter(each -> each.verdict != Verdict.IMPOSSIBLE)
            .anyMatch(each -> each.backend != null && each.backend.preparesWhenGranted());
  }

  /** Whether the request would be served without all that it demands. */
  boolean isServedWithLess(GpuBook book, VirtualGpuRequest request) {
    return request.failureMode() == FailureMode.OPEN
        && candidates(book, request)
            .noneMatch(each -> each.verdict != Verdict.IMPOSSIBLE && each.lacks == 0);
  }

  /** Why no backend can serve a request on a GPU, or what the available ones lack. */
  String lack(GpuBook book, VirtualGpuRequest request) {
    return book.gpu.id()
        + ": "
        + candidates(book, request)
            .map(each -> each.name() + " " + each.reason)
            .collect(Collectors.joining(", "));
  }

  /** Why no backend can serve a request at this moment although there is room; empty if one can. */
  Optional<String> lackNow(GpuBook book, VirtualGpuRequest request) {
    if (choose(book, request).isPresent()) {
      return Optional.empty();
    }
    return Optional.of(lack(book, request));
  }

  // ---- one by one

  private static Candidate inProcess(GpuBook book, VirtualGpuRequest request) {
    Capabilities can = InProcessBackend.CAPABILITIES;
    Optional<String> unusable =
        unnamed(InProcessBackend.NAME, request)
            .or(book.gpu::unusableAsWhole)
            .or(() -> partless(List.of(), request));
    if (unusable.isPresent()) {
      return new Candidate(null, Verdict.IMPOSSIBLE, unusable.get(), 0, Optional.of(can));
    }
    return judged(null, can, book, request);
  }

  private Candidate candidate(EnforcementBackend backend, GpuBook book, VirtualGpuRequest request) {
    Optional<String> obstacle =
        unnamed(backend.name(), request).or(() -> obstacle(backend, book.gpu));
    if (obstacle.isPresent()) {
      return new Candidate(backend, Verdict.IMPOSSIBLE, obstacle.get(), 0, Optional.empty());
    }
    Candidate judged = judged(backend, backend.capabilities(), book, request);
    Optional<String> never =
        judged.verdict == Verdict.IMPOSSIBLE
            ? Optional.empty()
            : partless(backend, book.gpu, request)
                .or(() -> backend.unable(book.gpu, request))
                .or(
                    () ->
                        enforcements
                            .beneath(backend)
                            .flatMap(below -> below.unable(book.gpu, request)));
    if (never.isPresent()) {
      return new Candidate(
          backend, Verdict.IMPOSSIBLE, never.get(), judged.lacks, judged.capabilities);
    }
    Optional<String> later =
        judged.verdict == Verdict.POSSIBLE ? lackNow(backend, book, request) : Optional.empty();
    return later.isEmpty()
        ? judged
        : new Candidate(backend, Verdict.NOT_NOW, later.get(), judged.lacks, judged.capabilities);
  }

  /** A backend that sets parts aside knows what is left only when no part is in work. */
  private Optional<String> lackNow(
      EnforcementBackend backend, GpuBook book, VirtualGpuRequest request) {
    return backend.preparesWhenGranted() && work.isOnParts()
        ? Optional.of("a part of a GPU is being set aside, moved or given back")
        : enforcements.lack(backend, book.gpu, request);
  }

  /** Why a backend may not serve a request that names another one; empty if it may. */
  private static Optional<String> unnamed(String backend, VirtualGpuRequest request) {
    return request
        .backend()
        .filter(named -> !named.equals(backend))
        .map(named -> "is not the named backend, " + named);
  }

  /** Why a request that names a part of a GPU cannot be served; empty if it may. */
  private static Optional<String> partless(
      EnforcementBackend backend, PhysicalGpu gpu, VirtualGpuRequest request) {
    try {
      return request.part().isEmpty() ? Optional.empty() : partless(backend.parts(gpu), request);
    } catch (VgpuException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  private static Optional<String> partless(List<GpuPart> made, VirtualGpuRequest request) {
    return made.isEmpty()
        ? request.part().map(part -> "makes no parts of a GPU, such as " + part)
        : Optional.empty();
  }

  /** Why a backend does not work on a GPU for any request; empty if it does. */
  private Optional<String> obstacle(EnforcementBackend backend, PhysicalGpu gpu) {
    if (!backend.serves(gpu)) {
      return Optional.of("does not support this GPU");
    }
    BackendStatus status = backend.status();
    if (!status.isAvailable()) {
      return status.unavailableBecause();
    }
    if (gpu.unusableAsWhole().isPresent() && !isSpatial(backend)) {
      return gpu.unusableAsWhole();
    }
    if (backend.needs().isPresent() && enforcements.beneath(backend).isEmpty()) {
      return Optional.of("needs another backend that is not available: " + backend.needs().get());
    }
    return backend.obstacle(gpu);
  }

  private static Candidate judged(
      @Nullable EnforcementBackend backend,
      Capabilities can,
      GpuBook book,
      VirtualGpuRequest request) {
    boolean spatial = can.compute() == Capabilities.Compute.SPATIAL;
    List<String> missing = can.missingFor(request.requires());
    boolean putUpWith = request.failureMode() == FailureMode.OPEN;
    Verdict verdict = Verdict.POSSIBLE;
    String reason =
        missing.isEmpty()
            ? "meets the demands"
            : "lacks " + missing + ", accepted under FailureMode.OPEN";
    if (!missing.isEmpty() && !putUpWith) {
      verdict = Verdict.IMPOSSIBLE;
      reason = "lacks " + missing;
    } else if (spatial && request.gpuCount() > 1) {
      verdict = Verdict.IMPOSSIBLE;
      reason = "shares a GPU in space; several GPUs at once need turns";
    } else {
      String others = book.sharedOtherwise(spatial);
      if (!others.isEmpty()) {
        verdict = Verdict.NOT_NOW;
        reason =
            "the GPU is shared in "
                + (spatial ? "turns" : "space")
                + ", and cannot be shared in both ways; held by "
                + others;
      }
    }
    return new Candidate(backend, verdict, reason, missing.size(), Optional.of(can));
  }

  // ---- for programs

  /**
   * The backend for the programs of a virtual GPU: the one prepared or chosen earlier, otherwise
   * the cheapest of those that lack the least.
   */
  EnforcementBackend forPrograms(Booking booking) {
    String chosen = booking.backend != null ? booking.backend : booking.chosen;
    String name = chosen != null ? chosen : booking.request().backend().orElse(null);
    List<String> reasons = new ArrayList<>();
    List<Candidate> found = new ArrayList<>();
    for (EnforcementBackend backend : enforcements.backends()) {
      if (name != null ? !name.equals(backend.name()) : isSpatial(backend)) {
        continue; // a lease that was granted turns keeps taking turns
      }
      Optional<String> obstacle = obstacle(backend, booking.gpu());
      if (obstacle.isPresent()) {
        reasons.add(backend.name() + " " + obstacle.get());
        continue;
      }
      int lacks = backend.capabilities().missingFor(booking.request().requires()).size();
      found.add(
          new Candidate(backend, Verdict.POSSIBLE, "", lacks, Optional.of(backend.capabilities())));
    }
    return found.stream()
        .min(Comparator.comparingInt(Candidate::lacks))
        .map(Candidate::backend)
        .orElseThrow(() -> nothing(booking, name, reasons));
  }

  private static VgpuException nothing(
      Booking booking, @Nullable String name, List<String> reasons) {
    return new VgpuException(
        "no backend can put programs under a virtual GPU of this GPU: gpu="
            + booking.gpu().id()
            + " provider="
            + booking.gpu().provider()
            + (name == null ? "" : " chosen=" + name)
            + " backends="
            + (reasons.isEmpty()
                ? "none installed: put the module of one on the class path"
                : reasons));
  }

  /** The capabilities enforced for a virtual GPU: on calls by turns, on programs by a backend. */
  public Capabilities capabilities(Booking booking) {
    Capabilities calls = InProcessBackend.CAPABILITIES;
    try {
      return calls.and(forPrograms(booking).capabilities()).and(now(booking));
    } catch (VgpuException e) {
      return calls;
    }
  }

  /** What is known only while its programs run. */
  private static Capabilities now(Booking booking) {
    EnforcedLease lease = booking.enforced();
    Capabilities.Builder now = Capabilities.builder();
    if (lease != null) {
      lease.preemption().ifPresent(now::preemption);
    }
    return now.build();
  }

  // ---- explaining

  /** The choices for one GPU; {@code taken} says whether the request would be placed there. */
  List<BackendChoice> explain(GpuBook book, VirtualGpuRequest request, boolean taken) {
    Optional<Candidate> best = choose(book, request);
    Optional<String> room =
        book.couldFit(request)
            ? book.lack(request)
            : Optional.of("the GPU has less memory: usableMemory=" + book.gpu.usableMemory());
    List<BackendChoice> choices = new ArrayList<>();
    candidates(book, request)
        .forEach(
            each -> {
              boolean chosen = best.isPresent() && best.get().name().equals(each.name());
              choices.add(choice(book, request, each, room, chosen, taken));
            });
    return choices;
  }

  private static BackendChoice choice(
      GpuBook book,
      VirtualGpuRequest request,
      Candidate each,
      Optional<String> room,
      boolean chosen,
      boolean taken) {
    if (each.verdict == Verdict.IMPOSSIBLE) {
      return each.with(book, Verdict.IMPOSSIBLE, each.reason);
    }
    if (!book.couldFit(request)) {
      return each.with(book, Verdict.IMPOSSIBLE, room.orElse(each.reason));
    }
    if (each.verdict == Verdict.NOT_NOW || room.isPresent()) {
      return each.with(
          book, Verdict.NOT_NOW, each.verdict == Verdict.NOT_NOW ? each.reason : room.orElse(""));
    }
    if (chosen && taken) {
      return each.with(book, Verdict.CHOSEN, each.reason + ", at the lowest cost");
    }
    String why = chosen ? ", but another GPU suits better" : ", but another backend costs less";
    return each.with(book, Verdict.POSSIBLE, each.reason + why);
  }
}
