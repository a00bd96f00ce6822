package dev.vgpu.core.seat;

import static java.nio.charset.StandardCharsets.US_ASCII;

import dev.vgpu.core.book.Booking;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.disk.Member;
import dev.vgpu.files.FileAccess;
import dev.vgpu.spi.UnreadFiles;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.nio.file.attribute.UserPrincipalLookupService;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import jdk.net.ExtendedSocketOptions;
import jdk.net.UnixDomainPrincipal;
import org.jspecify.annotations.Nullable;

/**
 * The users that a seat serves: its own user, root, and the members of the run directory's group if
 * root has opened the directory to one. Thread-safe.
 */
final class SeatUsers {
  private static final String ROOT = "0";

  /** The kernel names every user so whom the seat's user namespace does not map. */
  private static final Path UNMAPPED = Path.of("/proc/sys/kernel/overflowuid");

  /** Of the virtual GPUs that have ended, the owners of this many are remembered. */
  private static final int MOST_REMEMBERED = 4_096;

  private final LeaseTable table;
  private final ReentrantLock lock = new ReentrantLock();
  private final Map<String, Member> granted =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Member> eldest) {
          return size() > MOST_REMEMBERED;
        }
      };

  private volatile Set<UserPrincipal> trusted = Set.of();
  private volatile @Nullable UserPrincipal root;
  private volatile @Nullable UserPrincipal unmapped;
  private volatile boolean servesGroup;

  SeatUsers(LeaseTable table) {
    this.table = table;
  }

  /**
   * Lets the users connect to a socket of this process.
   *
   * @param protect is given the socket before other users can connect
   * @return what finds the files that they pass, if {@code protect} returns it
   */
  Optional<UnreadFiles> letIn(Path socket, Function<Path, Optional<UnreadFiles>> protect)
      throws IOException {
    UserPrincipalLookupService names = socket.getFileSystem().getUserPrincipalLookupService();
    UserPrincipal mightiest = names.lookupPrincipalByName(ROOT);
    root = mightiest;
    if (Files.exists(UNMAPPED)) {
      unmapped = names.lookupPrincipalByName(Files.readString(UNMAPPED, US_ASCII).strip());
    }
    trusted = Set.copyOf(List.of(Files.getOwner(socket), mightiest));
    Path directory = Objects.requireNonNull(socket.toAbsolutePath().getParent(), "a directory");
    servesGroup = FileAccess.isForGroup(directory);
    if (!servesGroup) {
      return Optional.empty();
    }
    Optional<UnreadFiles> unread = protect.apply(socket);
    FileAccess.of(directory).apply(socket, true); // only members of the group can connect
    return unread;
  }

  /**
   * {@return the user that the process at the other end of a connection runs as, according to the
   * kernel} May have to ask a service for the user's name.
   *
   * @throws IllegalStateException if the seat does not serve this user
   */
  ClientUser user(SocketChannel channel) {
    try {
      if (!channel.supportedOptions().contains(ExtendedSocketOptions.SO_PEERCRED)) {
        return new ClientUser(this, Optional.empty(), Optional.empty());
      }
      UnixDomainPrincipal peer = channel.getOption(ExtendedSocketOptions.SO_PEERCRED);
      Optional<UserPrincipal> account = Optional.of(peer.user());
      if (trusted.contains(peer.user())) {
        return new ClientUser(this, account, Optional.empty());
      }
      if (peer.user().equals(unmapped)) {
        throw new IllegalStateException(
            "the seat serves no user whom the kernel does not tell apart from others: "
                + peer.user());
      }
      if (!servesGroup) {
        throw new IllegalStateException("the seat serves " + trusted + ", not " + peer.user());
      }
      Member member = new Member(peer.user().getName(), peer.group().getName());
      return new ClientUser(this, account, Optional.of(member));
    } catch (IOException e) {
      throw new IllegalStateException("the peer's user cannot be determined", e);
    }
  }

  /** {@return whether this is root, who may name any process as its own} */
  boolean isRoot(UserPrincipal user) {
    return user.equals(root);
  }

  /** Remembers whose a virtual GPU is, also after its end. */
  void granted(String id, Optional<Member> to) {
    if (to.isPresent()) {
      lock.lock();
      try {
        granted.put(id, to.get());
      } finally {
        lock.unlock();
      }
    }
  }

  /** {@return the ids of a member's virtual GPUs, and of those that have ended lately} */
  Set<String> idsOf(Member member) {
    Set<String> ids = new HashSet<>();
    for (Booking booking : table.bookingsOf(member)) {
      ids.add(booking.id);
    }
    lock.lock();
    try {
      granted.forEach(
          (id, of) -> {
            if (of.isSameUser(member)) {
              ids.add(id);
            }
          });
    } finally {
      lock.unlock();
    }
    return ids;
  }

  /** {@return whether a virtual GPU is a member's, or was and has ended lately} */
  boolean isOf(Member member, String id) {
    lock.lock();
    try {
      Member of = granted.get(id);
      if (of != null) {
        return of.isSameUser(member);
      }
    } finally {
      lock.unlock();
    }
    return table
        .booking(id)
        .flatMap(booking -> booking.member)
        .filter(member::isSameUser)
        .isPresent();
  }

  /** {@return the booking with an id} */
  Optional<Booking> booking(String id) {
    return table.booking(id);
  }
}
