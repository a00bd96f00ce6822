package dev.vgpu.nvml.mig;

import dev.vgpu.VgpuException;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigPlan;
import dev.vgpu.nvml.mig.plan.MigPlanner;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes room on one GPU: destroys the instances of leases without processes, and creates them again
 * elsewhere on the GPU. Instances without a record, those that several leases share, and those that
 * were asked for at their places stay. Guarded by the enforcement's lock.
 *
 * <p>The instance that a lease leaves first gets its own record, under a name that no lease has.
 * Only then does the lease's own record name the new place. So if this process is killed at any
 * point, the next holder of the seat destroys the old instance and creates the missing one. If a
 * record cannot be written, as on a full disk, or the driver fails, no further lease leaves its
 * instance, and those that left get their new ones.
 */
final class MigMoves {
  /** Suffix of a lease's name in the record of the instance that it leaves. */
  static final String LEFT = ".moved";

  private static final Logger log = LoggerFactory.getLogger(MigMoves.class);

  private final MigMaking making;
  private final Supplier<MigDriver> driver;
  private final Path directory;
  private final GpuId gpu;

  MigMoves(MigMaking making, Supplier<MigDriver> driver, Path directory, GpuId gpu) {
    this.making = making;
    this.driver = driver;
    this.directory = directory;
    this.gpu = gpu;
  }

  private MigState state() {
    return driver.get().gpu(gpu);
  }

  /** {@return a description of each move; empty if the request already fits, or no move helps} */
  List<String> makeRoom(
      VirtualGpuRequest request, Collection<MigLease> leases, Predicate<String> mayMove)
      throws IOException {
    MigState state = state();
    Optional<MigGeometry> geometry = state.geometry();
    if (geometry.isEmpty()) {
      return List.of();
    }
    Map<Integer, MigLease> idle = idle(state, leases, mayMove);
    Optional<MigPlan> plan = plan(state, geometry.get(), request, idle.keySet());
    return plan.isEmpty() ? List.of() : carryOut(plan.get(), idle, geometry.get());
  }

  /** {@return the movable leases by instance number: the instance exists and has no other lease} */
  private Map<Integer, MigLease> idle(
      MigState state, Collection<MigLease> leases, Predicate<String> mayMove) throws IOException {
    Collection<MigRecord> records = MigRecord.all(directory).values();
    Map<Integer, MigLease> idle = new HashMap<>();
    for (MigLease lease : leases) {
      MigRecord record = lease.record();
      if (record.gpu().equals(gpu)
          && record.state() == MigRecord.State.MADE
          && !lease.isLost()
          && !MigParts.isPinned(lease.request())
          && MigEnforcement.isThere(record, state)
          && MigSharing.others(record, records).isEmpty()
          && mayMove.test(record.lease())) {
        record
            .find(state)
            .filter(instance -> instance.parts().size() == 1)
            .ifPresent(instance -> idle.put(instance.id(), lease));
      }
    }
    return idle;
  }

  /** {@return the plan with the fewest moves over all sufficient profiles; empty if one fits} */
  private static Optional<MigPlan> plan(
      MigState state, MigGeometry geometry, VirtualGpuRequest request, Set<Integer> movable) {
    MigPlan best = null;
    for (MigProfile profile : MigParts.wanted(geometry, request)) {
      Optional<MigPlan> plan =
          MigPlanner.makeRoom(
              List.of(state.planned(Map.of(), movable).orElseThrow()), any -> Optional.of(profile));
      if (plan.isPresent() && plan.get().moves().isEmpty()) {
        return Optional.empty();
      }
      if (plan.isPresent() && (best == null || plan.get().moves().size() < best.moves().size())) {
        best = plan.get();
      }
    }
    return Optional.ofNullable(best);
  }

  /** All leave before the first arrives, because some may take each other's places. */
  private List<String> carryOut(MigPlan plan, Map<Integer, MigLease> idle, MigGeometry geometry)
      throws IOException {
    Set<Integer> leaving =
        plan.moves().stream().map(move -> move.instance().id()).collect(Collectors.toSet());
    List<Integer> others =
        state().instances().stream()
            .map(MigState.Instance::id)
            .filter(id -> !leaving.contains(id))
            .toList();
    Map<MigLease, MigRecord> left = new LinkedHashMap<>();
    for (MigPlan.Move move : plan.moves()) {
      MigLease lease = Objects.requireNonNull(idle.get(move.instance().id()));
      MigRecord was = lease.record();
      MigRecord intent =
          MigRecord.intended(was.lease(), gpu, was.profileId(), move.start(), others, was.terms());
      try {
        if (leave(was, intent)) {
          left.put(lease, intent);
        }
      } catch (VgpuException | IOException e) {
        if (left.isEmpty()) {
          throw e;
        }
        log.warn("no more leases make room: one cannot leave its instance: {}", was, e);
        break; // those that left must arrive
      }
    }
    List<String> moved = new ArrayList<>();
    for (Map.Entry<MigLease, MigRecord> each : left.entrySet()) {
      MigProfile kind = geometry.profile(each.getValue().profileId()).orElseThrow();
      moved.add(arrive(each.getKey(), each.getValue(), kind));
    }
    return moved;
  }

  /** {@return whether the old instance is gone, or about to be; otherwise all is as before} */
  private boolean leave(MigRecord was, MigRecord intent) throws IOException {
    MigRecord left = was.named(was.lease() + LEFT);
    boolean begun = false;
    try {
      left.write(directory); // while both records name one instance, neither destroys it
      intent.write(directory);
      begun = true;
    } finally {
      if (!begun) {
        making.removeRecord(left.lease());
      }
    }
    if (making.tryDestroy(left) || !isStillThere(was, left)) {
      return true;
    }
    left.rename(directory, was.lease()); // needs no space
    return false;
  }

  /** If the driver does not tell, the record does: it names what was not taken apart. */
  private boolean isStillThere(MigRecord was, MigRecord left) throws IOException {
    try {
      return MigEnforcement.isThere(was, state());
    } catch (VgpuException e) {
      log.debug("the driver does not tell whether an instance is there: {}", was, e);
      MigRecord now = MigRecord.all(directory).get(left.lease());
      return now != null && now.state() == MigRecord.State.MADE;
    }
  }

  /** Creates the instance at its new place, or at any other if that is taken by now. */
  private String arrive(MigLease lease, MigRecord intent, MigProfile kind) {
    MigRecord was = lease.record();
    String text = was.lease() + ": its MIG instance moved from slice " + was.start() + " of " + gpu;
    try {
      MigRecord now = anew(lease, intent, kind);
      text +=
          " to slice "
              + now.start()
              + ", as "
              + now.device().map(GpuId::value).orElse("nothing")
              + "; programs that are started from now on need its variables anew";
      lease.moved(now, text);
    } catch (VgpuException | IOException e) {
      text = was.lease() + ": its MIG instance could not be made anew elsewhere: " + e.getMessage();
      lease.lost(text);
    }
    return text;
  }

  private MigRecord anew(MigLease lease, MigRecord intent, MigProfile kind) throws IOException {
    try {
      return making.made(intent, kind);
    } catch (VgpuException | IOException e) {
      log.debug("the place of a MIG instance that is moved was taken: {}", intent, e);
      return making.make(intent.lease(), gpu, lease.request());
    }
  }
}
