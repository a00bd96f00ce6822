package dev.vgpu.nvml.mig;

import dev.vgpu.GpuDriverException;
import dev.vgpu.VgpuException;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigGpu;
import dev.vgpu.nvml.mig.plan.MigPlanner;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates and destroys the instances of leases. Each has a record that is written before it is
 * created and removed after it is destroyed. Guarded by the enforcement's lock.
 */
final class MigMaking {
  private static final Logger log = LoggerFactory.getLogger(MigMaking.class);
  private static final int TRIES = 4;

  private final Path directory;
  private final Supplier<MigDriver> open;

  /**
   * Takes the directory of the records, and a driver.
   *
   * @param directory of the records
   * @param open returns the driver; opens it again after it failed
   */
  MigMaking(Path directory, Supplier<MigDriver> open) {
    this.directory = directory;
    this.open = open;
  }

  private MigDriver driver() {
    return open.get();
  }

  // ---- creating

  /** The place of an instance. */
  record Place(MigProfile profile, int start) {}

  /** {@return the smallest profile that is large enough and has a legal place} */
  static Optional<Place> place(MigState state, MigGeometry geometry, VirtualGpuRequest request) {
    MigGpu planned = state.planned(Map.of(), Set.of()).orElseThrow();
    for (MigProfile profile : MigParts.wanted(geometry, request)) {
      Optional<Integer> start = MigPlanner.start(planned, profile);
      if (start.isPresent()) {
        return Optional.of(new Place(profile, start.get()));
      }
    }
    return Optional.empty();
  }

  MigRecord make(String id, GpuId gpu, VirtualGpuRequest request) throws IOException {
    GpuDriverException failure = null;
    // A remaining record is about an instance that could not be destroyed: do not overwrite it.
    for (int i = 0; i < TRIES && !MigRecord.all(directory).containsKey(id); i++) {
      MigState state = driver().gpu(gpu);
      MigGeometry geometry =
          state
              .geometry()
              .orElseThrow(() -> new VgpuException("a GPU that cannot be cut: gpu=" + gpu));
      Optional<Place> place = place(state, geometry, request);
      try {
        if (place.isPresent()) {
          return made(intended(id, state, place.get(), request), place.get().profile());
        }
        List<MigState.Instance> hosts =
            MigSharing.hosts(state, request, MigRecord.all(directory).values());
        if (hosts.isEmpty()) {
          throw new VgpuException(
              MigParts.lack(state, geometry, request) + ": gpu=" + gpu + " asked " + request);
        }
        MigRecord.Terms terms = MigSharing.shared(request, geometry);
        return joined(MigRecord.joining(id, gpu, hosts.get(i % hosts.size()), terms));
      } catch (GpuDriverException e) {
        failure = e; // the place may have been taken meanwhile
      }
    }
    throw failure == null ? new VgpuException("no MIG instance could be made") : failure;
  }

  private MigRecord intended(String id, MigState state, Place place, VirtualGpuRequest request)
      throws IOException {
    List<Integer> before = new ArrayList<>();
    state.instances().forEach(each -> before.add(each.id()));
    MigRecord.Terms terms =
        MigSharing.terms(request, place.profile(), state.geometry().orElseThrow());
    MigRecord intent =
        MigRecord.intended(id, state.gpu(), place.profile().id(), place.start(), before, terms);
    intent.write(directory);
    return intent;
  }

  /** Creates a compute instance in an existing GPU instance; on failure, nothing is left behind. */
  private MigRecord joined(MigRecord joining) throws IOException {
    joining.write(directory);
    boolean done = false;
    try {
      MigRecord made = completed(joining);
      done = true;
      return made;
    } finally {
      if (!done) {
        boolean gone = tryDestroy(joining);
        log.debug("a MIG instance could not be joined: tidied={}", gone);
      }
    }
  }

  /** Creates the intended instance; on failure, nothing is left behind. */
  MigRecord made(MigRecord intent, MigProfile profile) throws IOException {
    MigRecord begun = intent;
    boolean done = false;
    try {
      int instance =
          driver().create(intent.gpu(), profile.id(), intent.start(), profile.memorySlices());
      begun = intent.begun(instance);
      begun.write(directory);
      MigRecord made = completed(begun);
      done = true;
      return made;
    } finally {
      if (!done && begun.instance().isEmpty()) {
        removeRecord(intent.lease());
      } else if (!done) {
        boolean gone = tryDestroy(begun);
        log.debug("a MIG instance was not completed: destroyed={}", gone);
      }
    }
  }

  private MigRecord completed(MigRecord begun) throws IOException {
    int instance = begun.instance().orElseThrow();
    int part = driver().createPart(begun.gpu(), instance, begun.terms().computeSlices());
    MigRecord made = begun.made(device(begun, instance, part));
    made.write(directory);
    return made;
  }

  private GpuId device(MigRecord record, int instance, int part) {
    return driver().gpu(record.gpu()).instances().stream()
        .filter(each -> each.id() == instance)
        .flatMap(each -> each.parts().stream())
        .filter(each -> each.id() == part)
        .findFirst()
        .orElseThrow(
            () ->
                new GpuDriverException(
                    "a MIG instance that was made is not there: gpu=" + record.gpu(), null))
        .device();
  }

  // ---- destroying

  /** {@return whether it is gone} NVML refuses while a program runs in it: try again later. */
  boolean tryDestroy(MigRecord record) {
    try {
      Optional<MigState.Instance> found = record.find(driver().gpu(record.gpu()));
      if (found.isPresent()) {
        destroy(record, found.get());
      }
      removeRecord(record.lease());
      return true;
    } catch (GpuDriverException | IOException e) {
      log.debug("a MIG instance cannot be destroyed yet: lease={}", record.lease(), e);
      return false;
    }
  }

  /** If other leases are in it, destroys only compute instances that no lease has. */
  private void destroy(MigRecord record, MigState.Instance found) throws IOException {
    List<MigRecord> others = MigSharing.others(record, MigRecord.all(directory).values());
    if (!found.parts().isEmpty()) {
      driver().destroyParts(record.gpu(), found.id(), MigSharing.devices(others));
    }
    if (others.isEmpty()) {
      checkIsBare(record);
      record.bare().write(directory);
      driver().destroy(record.gpu(), found.id());
    }
    log.debug(
        "destroyed a MIG instance: gpu={} instance={} lease={} others={}",
        record.gpu(),
        found.id(),
        record.lease(),
        others.size());
  }

  /** NVML may have listed too little: one with a compute instance would not be ours any more. */
  private void checkIsBare(MigRecord record) {
    Optional<MigState.Instance> now = record.find(driver().gpu(record.gpu()));
    if (now.isPresent() && !now.get().parts().isEmpty()) {
      throw new GpuDriverException(
          "a MIG instance still has a compute instance: gpu=" + record.gpu(), null);
    }
  }

  void removeRecord(String lease) {
    try {
      MigRecord.remove(directory, lease);
    } catch (IOException e) {
      log.warn("a record of a MIG instance cannot be removed: lease={}", lease, e);
    }
  }
}
