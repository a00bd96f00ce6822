package dev.vgpu.core.seat;

import dev.vgpu.core.book.BookedCalls;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.book.GpuBook;
import dev.vgpu.core.disk.LeaseRecord;
import dev.vgpu.core.node.Lease;
import dev.vgpu.core.node.LocalAuthority;
import dev.vgpu.core.node.Node;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fills the books of a new holder of the seat with the leases that earlier holders have granted.
 */
final class TakeOver {
  private static final Logger log = LoggerFactory.getLogger(TakeOver.class);

  private final Node node;
  private final LocalAuthority authority;
  private final SeatServer server;

  TakeOver(Node node, LocalAuthority authority, SeatServer server) {
    this.node = node;
    this.authority = authority;
    this.server = server;
  }

  /** Books these leases, and those of this JVM that are not on disk. */
  void restore(List<LeaseRecord> records) {
    Set<String> seen = new HashSet<>();
    for (LeaseRecord record : records) {
      seen.add(record.id());
      Optional<List<GpuBook>> books = authority.table().books(record.gpus());
      Lease own = node.lease(record.id());
      if (books.isEmpty()) {
        log.warn(
            "a lease is left alone, since its GPU is not here: id={} gpus={}",
            record.id(),
            record.gpus());
      } else if (own != null) {
        restoreOwn(own, record(own, record), books.get());
      } else {
        server.restore(record, books.get());
      }
    }
    for (Lease own : node.leases()) {
      if (!seen.contains(own.id)) {
        List<GpuBook> books = authority.table().books(own.gpuIds()).orElseThrow();
        restoreOwn(own, record(own, null), books);
      }
    }
  }

  /** Combines what this JVM knows of its own lease with the record on disk, if there is one. */
  private LeaseRecord record(Lease own, @Nullable LeaseRecord onDisk) {
    return new LeaseRecord(
        own.id,
        own.gpuIds(),
        own.request(),
        node.self(),
        onDisk == null ? Optional.empty() : onDisk.backend(),
        onDisk == null ? List.of() : onDisk.programs(),
        onDisk == null ? Optional.empty() : onDisk.suspension(),
        onDisk == null ? Optional.empty() : onDisk.chosen(),
        node.secret().key(),
        Optional.empty());
  }

  private void restoreOwn(Lease own, LeaseRecord record, List<GpuBook> books) {
    SeatServer.Owner owner =
        new SeatServer.Owner(record) {
          @Override
          public BookedCalls calls(String id, List<GpuBook> on, VirtualGpuRequest request) {
            return own;
          }
        };
    Booking booking = authority.table().restore(record, books, owner);
    authority.takeOver(booking);
    if (own.isAttached()) {
      booking.gate.countProcessesOnly(own.attachedCallsNs());
    }
    booking.gate.adopt(own.gate);
  }
}
