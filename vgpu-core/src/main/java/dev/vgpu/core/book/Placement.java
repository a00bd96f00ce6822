package dev.vgpu.core.book;

import dev.vgpu.VgpuException;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds where a request can be cut from, or why it cannot. Changes nothing. Guarded by the {@link
 * LeaseTable}'s lock.
 */
final class Placement {
  private static final Logger log = LoggerFactory.getLogger(Placement.class);

  /** In the order in which members of a gang take their turns. */
  private final List<GpuBook> books;

  private final BackendChoices choices;

  Placement(List<GpuBook> books, BackendChoices choices) {
    this.books = books;
    this.choices = choices;
  }

  /**
   * The GPUs to cut the request from now, as many as it asks for, all different; null if it does
   * not fit.
   */
  @Nullable List<GpuBook> place(VirtualGpuRequest request) {
    return choose(request, allowed(request).stream().filter(book -> book.fits(request)).toList());
  }

  /**
   * The same for a request that is served out of order. It must not delay another request that
   * waits ahead, whatever is given back, and whenever. So a GPU that the other may use is taken
   * only if what the other needs there is left over.
   */
  @Nullable List<GpuBook> placeBeside(VirtualGpuRequest request, VirtualGpuRequest first) {
    List<GpuBook> forFirst = allowed(first);
    return choose(
        request,
        allowed(request).stream()
            .filter(book -> book.fits(request))
            .filter(
                book ->
                    !forFirst.contains(book)
                        || !book.couldFit(first)
                        || !choices.couldServe(book, first)
                        || book.fitsBeside(request, first))
            .toList());
  }

  /**
   * Whether a request that does not fit may do so when the backends have done what they are about.
   */
  boolean mayFitSoon(VirtualGpuRequest request) {
    return allowed(request).stream()
        .anyMatch(
            book ->
                (book.isBeingFreed() && choices.couldServe(book, request))
                    || choices.mayHavePartSoon(book, request));
  }

  /**
   * The GPUs on which the request fits most tightly, so that large requests find room elsewhere.
   */
  private @Nullable List<GpuBook> choose(VirtualGpuRequest request, List<GpuBook> fitting) {
    Map<GpuBook, Integer> costs = new LinkedHashMap<>();
    for (GpuBook book : fitting) {
      choices.choose(book, request).ifPresent(choice -> costs.put(book, choice.cost()));
    }
    List<GpuBook> best =
        costs.keySet().stream()
            .sorted(
                Comparator.<GpuBook>comparingInt(book -> isNamed(book, request) ? 0 : 1)
                    .thenComparingInt(book -> costs.getOrDefault(book, 0))
                    .thenComparingInt(
                        book -> request.computePercent().isPresent() ? 0 : book.bookings.size())
                    .thenComparingInt(book -> book.freePercent(request.preemptionClass()))
                    .thenComparing(GpuBook::freeMemory))
            .limit(request.gpuCount())
            .toList();
    if (best.size() < request.gpuCount() || !hasNamed(best, request)) {
      return null;
    }
    return books.stream().filter(best::contains).toList();
  }

  private static boolean isNamed(GpuBook book, VirtualGpuRequest request) {
    return request.gpus().contains(book.gpu.id());
  }

  /** Whether all GPUs that the request names are among these. */
  private static boolean hasNamed(List<GpuBook> some, VirtualGpuRequest request) {
    return some.stream().filter(book -> isNamed(book, request)).count() == request.gpus().size();
  }

  /** The GPUs that a request could be cut from if all were free. */
  List<GpuBook> allowed(VirtualGpuRequest request) {
    return books.stream()
        .filter(book -> request.gpus().size() < request.gpuCount() || isNamed(book, request))
        .toList();
  }

  // ---- what could never be

  /** Throws if not even an empty pool could serve a request. */
  void checkPossible(VirtualGpuRequest request) {
    List<GpuBook> allowed = allowed(request);
    if (allowed.isEmpty() || !hasNamed(allowed, request)) {
      throw new IllegalArgumentException(
          "no such GPU in this pool: asked " + request + ", gpus=" + ids());
    }
    if (allowed.size() < request.gpuCount()) {
      throw new IllegalArgumentException(
          "more GPUs than this pool has: asked " + request + ", gpus=" + ids());
    }
    List<GpuBook> enough = allowed.stream().filter(book -> book.couldFit(request)).toList();
    if (enough.size() < request.gpuCount() || !hasNamed(enough, request)) {
      throw new IllegalArgumentException(
          (request.gpuCount() == 1
                  ? "more memory than any GPU can give: asked "
                  : "more memory than that many GPUs can give each: asked ")
              + request
              + "; "
              + allowed.stream()
                  .map(book -> book.gpu.id() + " usableMemory=" + book.gpu.usableMemory())
                  .collect(Collectors.joining(", ")));
    }
    checkEnforceable(request, allowed);
  }

  private List<GpuId> ids() {
    return books.stream().map(book -> book.gpu.id()).toList();
  }

  /** Refuses a request that demands more than can be enforced, or serves it with a warning. */
  private void checkEnforceable(VirtualGpuRequest request, List<GpuBook> allowed) {
    long capable = allowed.stream().filter(book -> choices.couldServe(book, request)).count();
    if (capable < request.gpuCount()) {
      throw new VgpuException(
          "no backend can enforce the demanded capabilities: "
              + request
              + "; "
              + lack(request, allowed));
    }
    if (allowed.stream().allMatch(book -> choices.isServedWithLess(book, request))) {
      log.warn("served without all demanded capabilities: {}; {}", request, lack(request, allowed));
    }
  }

  private String lack(VirtualGpuRequest request, List<GpuBook> allowed) {
    return allowed.stream()
        .map(book -> choices.lack(book, request))
        .collect(Collectors.joining("; "));
  }

  // ---- why not now

  /** Why a request does not fit now, and which tenants hold what it needs. */
  String refusal(VirtualGpuRequest request, String more) {
    List<GpuBook> allowed = allowed(request);
    StringBuilder text =
        new StringBuilder(
            request.gpuCount() == 1
                ? "no GPU has room: asked "
                : "not that many GPUs have room: asked ");
    text.append(request).append(more);
    for (GpuBook book : allowed) {
      book.lack(request)
          .or(() -> choices.lackNow(book, request))
          .ifPresent(lack -> text.append("; ").append(lack));
    }
    allowed.forEach(book -> text.append("; ").append(book.occupation(request)));
    return text.toString();
  }
}
