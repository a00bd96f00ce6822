package dev.vgpu.core.seat;

import dev.vgpu.core.book.Enforcements;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.LeaseRecord;
import dev.vgpu.core.disk.PassingDirectory;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.RunDirectory;
import dev.vgpu.core.node.Node;
import dev.vgpu.files.RunPlace;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongPredicate;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes the seat of an empty run directory over, once per JVM that is a client of a seat. A first
 * take-over loads some 700 classes and several native libraries; a later one takes a third of its
 * time. Only backends that keep to the run directory take part.
 */
final class Rehearsal {
  private static final Logger log = LoggerFactory.getLogger(Rehearsal.class);
  private static final AtomicBoolean done = new AtomicBoolean();

  /** A program that starts, or runs only for a moment, needs the processor for itself. */
  static final long AFTER_NS = 1_000_000_000;

  /** A thread that has waited longer than this for a processor, meanwhile, has work to do. */
  static final long MOST_WAITED_NS = AFTER_NS / 4;

  /** A program that has run for so many times that long does not run only for a moment. */
  static final int MOST_PAUSES = 30;

  private static final MemorySize MOST_MEMORY = MemorySize.ofGibibytes(1);

  private final Node node;
  private final Discovery discovery;
  private final Enforcements enforcements;

  Rehearsal(Node node, Discovery discovery, Enforcements enforcements) {
    this.node = node;
    this.discovery = discovery;
    this.enforcements = enforcements;
  }

  /**
   * Rehearses after a second, if the node is still open and this JVM has not rehearsed before. On a
   * busy machine, it lets this JVM's other threads go first. A failure is only logged.
   */
  void run() {
    ProcessorWaits waits = new ProcessorWaits(node.clock()::nanoTime);
    if (!awaitRest(node::awaitShutDown, waits::mostSinceLastNs)
        || !done.compareAndSet(false, true)) {
      return;
    }
    try {
      takeOver();
    } catch (IOException | RuntimeException | OutOfMemoryError e) {
      log.debug("a take-over will take a moment longer", e);
    }
  }

  /**
   * Waits until the threads of this JVM get the processors that they need, or for long.
   *
   * @param isOver waits for so many nanoseconds, and returns whether the node was shut down
   * @param waitedNs the longest wait of a thread for a processor since its last call
   * @return whether the node is still open
   */
  static boolean awaitRest(LongPredicate isOver, LongSupplier waitedNs) {
    long ignored = waitedNs.getAsLong();
    for (int i = 0; i < MOST_PAUSES; i++) {
      if (isOver.test(AFTER_NS)) {
        return false;
      }
      if (waitedNs.getAsLong() <= MOST_WAITED_NS) {
        return true;
      }
    }
    return true;
  }

  /** Takes over in a new directory, which is removed again, also if the JVM ends meanwhile. */
  void takeOver() throws IOException {
    try (PassingDirectory directory = new PassingDirectory("vgpu")) {
      takeOver(new RunDirectory(directory.path(), RunPlace.Origin.NAMED));
    }
  }

  private void takeOver(RunDirectory directory) throws IOException {
    directory.prepare();
    try (LeaseDirectory leases = new LeaseDirectory(directory.leases())) {
      leases.write(lease(node.gpus().get(0)));
    }
    Node stage = new Node(node.settings(), node.clock(), ended -> {});
    stage.manage(node.gpus(), node.settings());
    Path locks = directory.path().resolve("gpus");
    Map<String, String> environment = Map.of("XDG_RUNTIME_DIR", directory.path().toString());
    try {
      new SeatKeeper(
              stage,
              directory,
              discovery,
              List.of(),
              new GpuLocks(environment, directory.origin(), locks),
              enforcements.anewIn(directory.path()))
          .join();
    } finally {
      stage.shutDown();
      stage.awaitEnd();
    }
  }

  private LeaseRecord lease(PhysicalGpu gpu) {
    MemorySize memory = gpu.memory().compareTo(MOST_MEMORY) < 0 ? gpu.memory() : MOST_MEMORY;
    return new LeaseRecord(
        "rehearsal-1",
        List.of(gpu.id()),
        VirtualGpuRequest.builder().memory(memory).build(),
        ProcessIdentity.current(),
        enforcements.thatKeepsToRunDirectory(gpu),
        List.of());
  }
}
