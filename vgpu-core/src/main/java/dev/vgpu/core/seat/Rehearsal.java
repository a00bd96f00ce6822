package dev.vgpu.core.seat;

import dev.vgpu.core.book.Enforcements;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.LeaseRecord;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.RunDirectory;
import dev.vgpu.core.node.Node;
import dev.vgpu.files.RunPlace;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
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
  private static final long AFTER_NS = 1_000_000_000;

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
   * Rehearses after a second, if the node is still open and this JVM has not rehearsed before. A
   * failure is only logged.
   */
  void run() {
    if (node.awaitShutDown(AFTER_NS) || !done.compareAndSet(false, true)) {
      return;
    }
    try {
      takeOver();
    } catch (IOException | RuntimeException | OutOfMemoryError e) {
      log.debug("a take-over will take a moment longer", e);
    }
  }

  /** Takes over in a new directory, which is removed again. */
  void takeOver() throws IOException {
    Path path = Files.createTempDirectory("vgpu");
    try {
      takeOver(new RunDirectory(path, RunPlace.Origin.NAMED));
    } finally {
      TrustedFiles.deleteTree(path);
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
