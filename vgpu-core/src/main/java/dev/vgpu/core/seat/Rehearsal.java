package dev.vgpu.core.seat;

import dev.vgpu.GpuSettings;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.book.GpuSlot;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.book.PendingRequest;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.LeaseRecord;
import dev.vgpu.core.node.LocalAuthority;
import dev.vgpu.core.schedule.SchedulerSettings;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.Tenant;
import dev.vgpu.core.turn.RemoteGate;
import dev.vgpu.core.turn.TenantGate;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.nio.channels.ServerSocketChannel;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads, in advance, the classes that a client needs to take the seat over. Class loading is the
 * largest part of a first take-over.
 */
final class Rehearsal {
  private static final Logger log = LoggerFactory.getLogger(Rehearsal.class);
  private static final AtomicBoolean done = new AtomicBoolean();

  private Rehearsal() {}

  static void run() {
    if (!done.compareAndSet(false, true)) {
      return;
    }
    List<Class<?>> needed =
        List.of(
            SeatServer.class,
            ClientSession.class,
            RemoteLease.class,
            LocalAuthority.class,
            LeaseTable.class,
            PendingRequest.class,
            Booking.class,
            GpuSlot.class,
            LeaseDirectory.class,
            LeaseRecord.class,
            RemoteGate.class,
            TenantGate.class,
            Tenant.class,
            ShareScheduler.class);
    step();
    try {
      for (Class<?> type : needed) {
        Class<?> ignored = Class.forName(type.getName(), true, Rehearsal.class.getClassLoader());
      }
      ServerSocketChannel.open(StandardProtocolFamily.UNIX).close();
    } catch (ClassNotFoundException | IOException e) {
      log.debug("a take-over will take a moment longer", e);
    }
  }

  private static void step() {
    SchedulerSettings settings = SchedulerSettings.from(GpuSettings.defaults());
    int ignored = new ShareScheduler(settings, (victim, by, asked) -> {}, 0).doWork(0);
  }
}
