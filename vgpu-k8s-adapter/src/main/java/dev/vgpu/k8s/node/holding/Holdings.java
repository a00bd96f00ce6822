package dev.vgpu.k8s.node.holding;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.ContainerSpec;
import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.cdi.CdiContent;
import dev.vgpu.k8s.node.holding.Holding.Part;
import dev.vgpu.k8s.node.holding.Holding.Stage;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The virtual GPUs held on this node. Safe for use by several threads; operations exclude each
 * other.
 *
 * <p>Each step is on disk before the next one begins: the intention, the acquisition, the CDI file,
 * the result. {@link #replay} completes what a dead process had begun. A virtual GPU ends with the
 * process that acquired it, or with the last program under it. Therefore a virtual GPU of a dead
 * process either still has programs, and is left to them, or is acquired again under the same CDI
 * name.
 */
public final class Holdings {
  private static final Logger log = LoggerFactory.getLogger(Holdings.class);
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Enough for a program's context on any GPU. A smaller quota is refused. */
  private static final MemorySize A_CONTEXTS = MemorySize.ofGibibytes(1);

  private final GpuPool pool;
  private final KeptFiles records;
  private final KeptFiles descriptions;
  private final Step.Listener steps;
  private final ReentrantLock acting = new ReentrantLock();
  private final Map<String, Holding> held = new LinkedHashMap<>();

  /** By {@link VirtualGpu#id()}: the virtual GPUs that this process acquired. */
  private final Map<String, VirtualGpu> acquired = new HashMap<>();

  /** The keys of what an earlier process had taken, while it is not known whether it is in use. */
  private final Set<String> unsettled = new HashSet<>();

  /**
   * Uses two directories, which are created if they are missing.
   *
   * @param pool the node's GPUs
   * @param state the directory for records, not used by anything else
   * @param cdi where container runtimes read CDI files
   * @param steps is notified of each step
   * @throws IOException if a directory cannot be used
   */
  public Holdings(GpuPool pool, Path state, Path cdi, Step.Listener steps) throws IOException {
    this.pool = pool;
    this.records = new KeptFiles(state, "", "rw-------", steps);
    this.descriptions = new KeptFiles(cdi, "vgpu.dev-", "rw-r--r--", steps);
    this.steps = steps;
  }

  /** {@return all holdings, in the order in which they were taken} */
  public List<Holding> all() {
    acting.lock();
    try {
      return List.copyOf(held.values());
    } finally {
      acting.unlock();
    }
  }

  /**
   * {@return the name by which a container requests a part from its runtime}
   *
   * @param device {@link Part#device()}
   */
  public static String cdiName(String device) {
    return CdiContent.KIND + "=" + device;
  }

  /**
   * Completes what a dead process had begun. Called once, before all other methods.
   *
   * @param isWanted whether a holding that was taken is to be kept until it is settled
   * @throws IOException if a file cannot be read, written or removed
   */
  public void replay(Predicate<Holding> isWanted) throws IOException {
    acting.lock();
    try {
      for (String key : records.keys()) {
        Holding found = read(key);
        if (found == null) {
          descriptions.remove(key);
          continue;
        }
        held.put(key, found);
        if (found.stage() != Stage.TAKEN || !isWanted.test(found)) {
          log.info("given back after a restart: key={} stage={}", key, found.stage());
          giveBackHeld(found);
        } else {
          unsettled.add(key);
        }
      }
      for (String key : descriptions.keys()) {
        if (!held.containsKey(key)) {
          descriptions.remove(key);
        }
      }
    } finally {
      acting.unlock();
    }
    tend();
  }

  /**
   * Acquires a small virtual GPU, describes it and gives it back, so that the first pod does not
   * wait for what is opened and loaded then. A failure is only logged: a GPU may be full, and then
   * the first pod waits.
   */
  public void rehearse() {
    Optional<PhysicalGpu> whole =
        pool.gpus().stream().filter(gpu -> gpu.unusableAsWhole().isEmpty()).findFirst();
    if (whole.isEmpty()) {
      return;
    }
    MemorySize usable = whole.get().usableMemory();
    Terms least =
        new Terms(
            List.of(whole.get().id()),
            Optional.empty(),
            OptionalInt.empty(),
            usable.compareTo(A_CONTEXTS) < 0 ? usable : A_CONTEXTS,
            SharePolicy.BEST_EFFORT,
            PreemptionClass.OFFLINE,
            Capabilities.FaultIsolation.NONE,
            Capabilities.Compute.NONE);
    try (VirtualGpu gpu = pool.acquire(least.request("rehearsal"))) {
      log.debug("rehearsed: {}", description(Map.of(gpu.id(), gpu.containerSpec())));
    } catch (VgpuException | IllegalArgumentException | IllegalStateException e) {
      log.debug("the first virtual GPU will take a moment longer", e);
    }
  }

  private static String description(Map<String, ContainerSpec> specs) {
    return JSON.<JsonNode>valueToTree(CdiContent.of(specs)).toPrettyString() + "\n";
  }

  /** Whether a holding is in use. */
  @FunctionalInterface
  public interface Usage {
    /**
     * {@return whether it is in use}
     *
     * @param holding what is held
     * @throws IOException if that cannot be told
     */
    boolean isUsed(Holding holding) throws IOException;
  }

  /**
   * Gives back what an earlier process had taken and nobody uses any more. Cheap if nothing is left
   * to be told; call it until then. What is taken again meanwhile stays: then it is in use.
   *
   * @param usage is asked while other operations go on
   * @return whether something was given back
   * @throws IOException if it cannot be told, or a file cannot be written or removed; may be tried
   *     again
   */
  public boolean settle(Usage usage) throws IOException {
    boolean isChanged = false;
    for (Holding holding : unsettled()) {
      boolean isUsed = usage.isUsed(holding);
      acting.lock();
      try {
        if (isUsed) {
          unsettled.remove(holding.key());
        } else if (unsettled.contains(holding.key())) {
          log.info("given back, as nobody uses it any more: key={}", holding.key());
          giveBackHeld(held.getOrDefault(holding.key(), holding));
          isChanged = true;
        }
      } finally {
        acting.unlock();
      }
    }
    return isChanged;
  }

  private List<Holding> unsettled() {
    acting.lock();
    try {
      return held.values().stream().filter(one -> unsettled.contains(one.key())).toList();
    } finally {
      acting.unlock();
    }
  }

  private @Nullable Holding read(String key) throws IOException {
    Path file = records.file(key);
    try {
      Holding found = HoldingText.read(JSON.readTree(file.toFile()));
      if (found.key().equals(key)) {
        return found;
      }
      throw new IllegalArgumentException("it is of another key: " + found.key());
    } catch (JsonProcessingException | IllegalArgumentException e) {
      // It names nothing that must be given back: all of that ended with its process.
      Path aside = file.resolveSibling(key + ".damaged");
      log.error("a record is damaged and set aside: file={}", aside, e);
      Files.deleteIfExists(aside);
      Files.move(file, aside);
      return null;
    }
  }

  /**
   * Acquires virtual GPUs again that ended with an earlier process and are still wanted. Cheap if
   * there is nothing to do; call it periodically. What cannot be acquired is tried again then.
   */
  public void tend() {
    acting.lock();
    try {
      if (held.values().stream().allMatch(this::isHeldHere)) {
        return;
      }
      Set<String> living = pool.leases().stream().map(GpuLease::id).collect(Collectors.toSet());
      for (Holding holding : List.copyOf(held.values())) {
        if (!isHeldHere(holding) && !isLeft(holding, living)) {
          takeAgain(holding);
        }
      }
    } finally {
      acting.unlock();
    }
  }

  private boolean isHeldHere(Holding holding) {
    return holding.parts().stream()
        .allMatch(part -> part.lease().filter(acquired::containsKey).isPresent());
  }

  /** Whether programs still run under a virtual GPU that an earlier process acquired. */
  private boolean isLeft(Holding holding, Set<String> living) {
    return holding.parts().stream()
        .anyMatch(
            part ->
                part.lease()
                    .filter(id -> living.contains(id) && !acquired.containsKey(id))
                    .isPresent());
  }

  private void takeAgain(Holding holding) {
    try {
      complete(holding);
      log.info("acquired anew after a restart: key={}", holding.key());
    } catch (VgpuException | IllegalArgumentException | IllegalStateException | IOException e) {
      // For example, its GPU was replaced. The others are acquired all the same.
      log.warn(
          "cannot be acquired anew yet; if that lasts, delete its pod: key={} owner={}/{}: {}",
          holding.key(),
          holding.owner().namespace(),
          holding.owner().name(),
          e.getMessage());
    }
  }

  /**
   * Takes virtual GPUs and describes them to the container runtime. Does nothing if the same is
   * already held under this key.
   *
   * @param wanted what to take
   * @return what is held now
   * @throws VgpuException if it does not fit, or cannot be enforced; nothing is held then
   * @throws IOException if a file cannot be written; nothing is held then
   */
  public Holding take(Holding wanted) throws IOException {
    acting.lock();
    try {
      Holding present = held.get(wanted.key());
      if (present != null && present.stage() == Stage.TAKEN && present.asksAs(wanted)) {
        unsettled.remove(wanted.key());
        tend();
        Holding now = held.getOrDefault(wanted.key(), present);
        if (!isHeldHere(now) && !isLeft(now, living())) {
          return complete(now);
        }
        return now;
      }
      if (present != null) {
        giveBackHeld(present);
      }
      Holding taking = wanted.at(Stage.TAKING);
      held.put(taking.key(), taking);
      try {
        keep(taking);
        steps.reached(Step.INTENT_KEPT);
        return complete(taking);
      } catch (VgpuException | IllegalStateException | IllegalArgumentException | IOException e) {
        undo(taking, e);
        throw e;
      }
    } finally {
      acting.unlock();
    }
  }

  private Set<String> living() {
    return pool.leases().stream().map(GpuLease::id).collect(Collectors.toSet());
  }

  private void undo(Holding taking, Exception why) {
    try {
      giveBackHeld(held.getOrDefault(taking.key(), taking));
    } catch (IOException e) {
      why.addSuppressed(e);
    }
  }

  private Holding complete(Holding holding) throws IOException {
    List<Part> parts = new ArrayList<>();
    List<VirtualGpu> gpus = new ArrayList<>();
    Map<String, ContainerSpec> specs = new LinkedHashMap<>();
    boolean isComplete = false;
    try {
      for (Part part : holding.parts()) {
        VirtualGpu gpu = part.lease().map(acquired::get).orElse(null);
        if (gpu == null) {
          gpu = pool.acquire(part.terms().request(name(holding, part)));
          gpus.add(gpu);
          steps.reached(Step.ACQUIRED);
        }
        parts.add(part.withLease(Optional.of(gpu.id())));
        specs.put(part.device(), gpu.containerSpec());
      }
      descriptions.write(holding.key(), description(specs));
      steps.reached(Step.DESCRIBED);
      Holding taken = holding.with(parts).at(Stage.TAKEN);
      keep(taken);
      held.put(taken.key(), taken);
      gpus.forEach(gpu -> acquired.put(gpu.id(), gpu));
      isComplete = true;
      steps.reached(Step.TAKEN_KEPT);
      return taken;
    } finally {
      if (!isComplete) {
        gpus.forEach(VirtualGpu::close);
      }
    }
  }

  private static String name(Holding holding, Part part) {
    int number = holding.parts().indexOf(part);
    return holding.key() + (number == 0 ? "" : "-" + number);
  }

  private void keep(Holding holding) throws IOException {
    records.write(holding.key(), HoldingText.of(holding).toString());
  }

  /**
   * Gives back what is held under a key, if anything. Programs that still run keep their virtual
   * GPU until they end.
   *
   * @param key the key
   * @throws IOException if a file cannot be written or removed; may be tried again
   */
  public void giveBack(String key) throws IOException {
    acting.lock();
    try {
      Holding present = held.get(key);
      if (present != null) {
        giveBackHeld(present);
      }
    } finally {
      acting.unlock();
    }
  }

  /**
   * Gives back what is held under a key, unless it has another owner by now.
   *
   * @param key the key
   * @param owner the owner that has ended
   * @throws IOException if a file cannot be written or removed; may be tried again
   */
  public void giveBack(String key, Holding.Owner owner) throws IOException {
    acting.lock();
    try {
      Holding present = held.get(key);
      if (present != null && present.owner().equals(owner)) {
        giveBackHeld(present);
      }
    } finally {
      acting.unlock();
    }
  }

  private void giveBackHeld(Holding holding) throws IOException {
    if (holding.stage() != Stage.RETURNING) {
      keep(holding.at(Stage.RETURNING));
      held.put(holding.key(), holding.at(Stage.RETURNING));
      steps.reached(Step.RETURN_KEPT);
    }
    for (Part part : holding.parts()) {
      VirtualGpu gpu = part.lease().map(acquired::remove).orElse(null);
      if (gpu != null) {
        gpu.close();
        steps.reached(Step.CLOSED);
      }
    }
    descriptions.remove(holding.key());
    steps.reached(Step.UNDESCRIBED);
    records.remove(holding.key());
    held.remove(holding.key());
    unsettled.remove(holding.key());
    steps.reached(Step.FORGOTTEN);
  }
}
