package dev.vgpu.core.seat;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.disk.Member;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuLease;
import java.nio.file.attribute.UserPrincipal;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * The user of a client, and what that user may do. The seat's own user and root may do everything.
 * A member of the seat's group sees and changes only its own virtual GPUs. Immutable.
 *
 * @param users those that the seat serves
 * @param account as the kernel names it; empty: not known, or the kernel does not tell
 * @param member empty: the seat's user or root
 */
record ClientUser(SeatUsers users, Optional<UserPrincipal> account, Optional<Member> member) {
  /**
   * {@return whether a process is alive and may be one of this user's} A client names itself and
   * the programs that it starts; what it holds stays held for as long as they live.
   */
  boolean mayName(ProcessIdentity process) {
    return account.map(user -> users.isRoot(user) || process.isOf(user)).orElse(true);
  }

  /**
   * Throws if a process is another user's. A client in another pid namespace names a process that
   * the seat does not see.
   */
  void checkMayBe(ProcessIdentity client) {
    if (!mayName(client) && client.isAlive()) {
      throw new IllegalStateException("the client names another user's process: " + client);
    }
  }

  /** {@return whether a virtual GPU may be this user's to change} */
  boolean owns(Booking booking) {
    return member.isEmpty() || booking.member.filter(member.get()::isSameUser).isPresent();
  }

  /** Throws if a virtual GPU is not this user's to change, as if it did not exist. */
  void checkOwns(String id) {
    if (!users.booking(id).map(this::owns).orElse(true)) {
      throw new IllegalStateException("no such virtual GPU: id=" + id);
    }
  }

  /** {@return those of a list that are about virtual GPUs that this user may see} */
  <T> List<T> visible(List<T> all, Function<T, String> id) {
    if (member.isEmpty()) {
      return all;
    }
    Predicate<String> seen = seen();
    return all.stream().filter(each -> seen.test(id.apply(each))).toList();
  }

  /** {@return whether this user may see a virtual GPU, by its id} */
  Predicate<String> seen() {
    return member.<Predicate<String>>map(of -> users.idsOf(of)::contains).orElse(id -> true);
  }

  /** {@return whether this user may see an event: it is about its own virtual GPU, or a GPU} */
  boolean maySee(GpuEvent event) {
    return member.isEmpty()
        || event instanceof GpuEvent.HealthChanged
        || event instanceof GpuEvent.GpuFault
        || users.isOf(member.get(), event.virtualGpu());
  }

  /** {@return a request, so that no backend serves it that cannot serve this user} */
  VirtualGpuRequest demanding(VirtualGpuRequest request) {
    return member.isEmpty()
        ? request
        : request.toBuilder().require(Capabilities.Scope.OTHER_USERS).build();
  }

  /** {@return a failure, without the virtual GPUs that this user may not see} */
  RuntimeException shown(RuntimeException failure) {
    return member.isPresent() && failure instanceof GpuCapacityException capacity
        ? new GpuCapacityException(
            String.valueOf(capacity.getMessage()), visible(capacity.holders(), GpuLease::id))
        : failure;
  }
}
