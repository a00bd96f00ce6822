package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import dev.vgpu.core.book.LeaseTable;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipalLookupService;
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
    users.letIn(Files.createFile(directory.resolve("seat.sock")));
    assertThat(users.user(channelOf("0", "0")).member()).isEmpty();
    String unmapped = Files.readString(Path.of("/proc/sys/kernel/overflowuid")).strip();
    SocketChannel stranger = channelOf(unmapped, "0");
    assertThatThrownBy(() -> users.user(stranger))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("does not tell apart");
  }
}
