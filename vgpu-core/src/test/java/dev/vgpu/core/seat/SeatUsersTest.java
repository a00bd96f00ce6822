package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.disk.Member;
import dev.vgpu.watch.GpuEvent;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipalLookupService;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import jdk.net.ExtendedSocketOptions;
import jdk.net.UnixDomainPrincipal;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which users a seat serves, by what the kernel says of them. */
class SeatUsersTest {
  @TempDir Path directory;

  private SocketChannel channelOf(String user, String group) throws IOException {
    UserPrincipalLookupService names = directory.getFileSystem().getUserPrincipalLookupService();
    SocketChannel channel = mock(SocketChannel.class);
    when(channel.supportedOptions()).thenReturn(Set.of(ExtendedSocketOptions.SO_PEERCRED));
    when(channel.getOption(ExtendedSocketOptions.SO_PEERCRED))
        .thenReturn(
            new UnixDomainPrincipal(
                names.lookupPrincipalByName(user), names.lookupPrincipalByGroupName(group)));
    return channel;
  }

  /** All users whom the seat's user namespace does not map would be one member. */
  @Test
  void aUserWhomTheKernelDoesNotTellApartIsNotServed() throws IOException {
    SeatUsers users = new SeatUsers(mock(LeaseTable.class));
    Path socket = Files.createFile(directory.resolve("seat.sock"));
    assertThat(users.letIn(socket, path -> Optional.empty())).isEmpty();
    assertThat(users.user(channelOf("0", "0")).member()).isEmpty();
    String unmapped = Files.readString(Path.of("/proc/sys/kernel/overflowuid")).strip();
    SocketChannel stranger = channelOf(unmapped, "0");
    assertThatThrownBy(() -> users.user(stranger))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("does not tell apart");
  }

  private static GpuEvent aboutMemory(String virtualGpu) {
    return new GpuEvent.AllocationDenied(Instant.EPOCH, virtualGpu, 1, "as a test wants it");
  }

  @Test
  void aMemberSeesOnlyItsOwnVirtualGpusAndTheHealthOfGpus() {
    SeatUsers users = new SeatUsers(mock(LeaseTable.class));
    Member alice = new Member("alice", "a");
    users.granted("a-1", Optional.of(alice));
    users.granted("b-1", Optional.of(new Member("bob", "a")));
    users.granted("root-1", Optional.empty());
    List<String> all = List.of("a-1", "b-1", "root-1", "ended-under-an-earlier-holder-1");
    GpuEvent health = mock(GpuEvent.HealthChanged.class);
    ClientUser member = new ClientUser(users, Optional.empty(), Optional.of(alice));
    assertThat(member.visible(all, id -> id)).containsExactly("a-1");
    assertThat(all).filteredOn(member.seen()).containsExactly("a-1");
    assertThat(all).filteredOn(id -> member.maySee(aboutMemory(id))).containsExactly("a-1");
    assertThat(member.maySee(health)).isTrue();
    ClientUser root = new ClientUser(users, Optional.empty(), Optional.empty());
    assertThat(root.visible(all, id -> id)).isEqualTo(all);
    assertThat(all).filteredOn(root.seen()).isEqualTo(all);
    assertThat(all).filteredOn(id -> root.maySee(aboutMemory(id))).isEqualTo(all);
    assertThat(root.maySee(health)).isTrue();
  }
}
