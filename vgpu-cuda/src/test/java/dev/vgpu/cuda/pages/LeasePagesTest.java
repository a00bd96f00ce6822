package dev.vgpu.cuda.pages;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.vgpu.ProtocolMismatchException;
import dev.vgpu.VgpuException;
import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.layout.ShmLayout.Header;
import dev.vgpu.files.FileAccess;
import dev.vgpu.files.ProcessUser;
import dev.vgpu.testing.TestSeed;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LeasePagesTest {
  private static final int GRANT_LIMIT = ShmLayout.GRANT_OFFSET + ShmLayout.Grant.MEMORY_LIMIT;

  @TempDir Path directory;

  @Test
  void whatIsMadeCanBeAdopted() throws IOException {
    LeasePages made = LeasePages.in(directory, null);
    assertThat(made.adopted()).isFalse();
    made.grant().setLong(GRANT_LIMIT, 7);
    made.report().setLong(MemoryLedger.slotAt(5), 8);
    assertThat(Files.size(directory.resolve("grant"))).isEqualTo(ShmLayout.GRANT_SIZE);
    assertThat(Files.size(directory.resolve("report"))).isEqualTo(ShmLayout.REPORT_SIZE);
    LeasePages adopted = LeasePages.in(directory, null);
    assertThat(adopted.adopted()).isTrue();
    assertThat(adopted.grant().longAt(ShmLayout.GRANT_OFFSET + ShmLayout.Grant.MEMORY_LIMIT))
        .isEqualTo(7);
    assertThat(adopted.report().longAt(MemoryLedger.slotAt(5))).isEqualTo(8);
  }

  @Test
  void onlyTheirOwnerMayOpenThem() throws IOException {
    LeasePages pages = LeasePages.in(directory, null);
    assertThat(permissions("grant")).isEqualTo("rw-------");
    assertThat(permissions("report")).isEqualTo("rw-------");
    assertThat(pages.member()).isEmpty();
  }

  /** Only root can give files away; the rest of the class runs as any user. */
  @Test
  void aMembersProcessesWriteTheReportAndReadTheGrant() throws IOException {
    assumeTrue(ProcessUser.id() == 0);
    Path marker = Files.createFile(directory.resolve(FileAccess.MEMBER));
    Files.setAttribute(marker, "unix:uid", 54_321);
    Files.setAttribute(marker, "unix:gid", 54_322);
    for (boolean adopted : List.of(false, true)) {
      LeasePages pages = LeasePages.in(directory, null);
      assertThat(pages.adopted()).isEqualTo(adopted);
      assertThat(pages.member()).hasValueSatisfying(user -> assertThat(user).hasToString("54321"));
      assertThat(permissions("grant")).isEqualTo("rw-r-----");
      assertThat(owner("grant")).containsEntry("uid", 0).containsEntry("gid", 54_322);
      assertThat(permissions("report")).isEqualTo("rw-------");
      assertThat(owner("report")).containsEntry("uid", 54_321);
    }
  }

  private Map<String, Object> owner(String file) throws IOException {
    return Files.readAttributes(directory.resolve(file), "unix:uid,gid");
  }

  private String permissions(String file) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(directory.resolve(file)));
  }

  private void write(String file, int at, long value, int bytes) throws IOException {
    try (FileChannel channel =
        FileChannel.open(directory.resolve(file), StandardOpenOption.WRITE)) {
      ByteBuffer buffer = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(0, value);
      channel.write(buffer.limit(bytes), at);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"grant", "report"})
  void anotherMajorIsRefusedAndBothAreNamed(String file) throws IOException {
    LeasePages.in(directory, null);
    write(file, Header.LAYOUT_MAJOR, 9, 4);
    assertThatThrownBy(() -> LeasePages.in(directory, null))
        .isInstanceOf(ProtocolMismatchException.class)
        .hasMessageContaining("layout=9." + ShmLayout.LAYOUT_MINOR)
        .hasMessageContaining("mine=1." + ShmLayout.LAYOUT_MINOR);
  }

  @Test
  void anotherMinorIsUsed() throws IOException {
    LeasePages.in(directory, null);
    write("grant", Header.LAYOUT_MINOR, 3, 4);
    assertThat(LeasePages.in(directory, null).adopted()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"grant", "report"})
  void garbageIsRefused(String file) throws IOException {
    LeasePages.in(directory, null);
    byte[] garbage = new byte[(int) Files.size(directory.resolve(file))];
    TestSeed.random().nextBytes(garbage);
    Files.write(directory.resolve(file), garbage);
    assertThatThrownBy(() -> LeasePages.in(directory, null))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("not a shared page of vgpu")
        .hasMessageContaining(file);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 7, 100, 5_000, 69_631, 69_633})
  void aReportOfAnotherLengthIsRefused(int bytes) throws IOException {
    LeasePages.in(directory, null);
    try (FileChannel channel =
        FileChannel.open(directory.resolve("report"), StandardOpenOption.WRITE)) {
      channel.truncate(bytes);
      if (bytes > ShmLayout.REPORT_SIZE) {
        channel.write(ByteBuffer.allocate(1), bytes - 1);
      }
    }
    assertThatThrownBy(() -> LeasePages.in(directory, null))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("bytes=" + bytes);
  }

  @Test
  void aMissingReportIsToldAndNotMadeAnew() throws IOException {
    LeasePages.in(directory, null);
    Files.delete(directory.resolve("report"));
    assertThatThrownBy(() -> LeasePages.in(directory, null)).isInstanceOf(VgpuException.class);
    assertThat(directory.resolve("report")).doesNotExist();
  }

  @Test
  void whatADeadSeatHadBegunIsMadeAnew() throws IOException {
    // The creator died before it wrote the magic, so no process can have attached.
    Files.write(directory.resolve("report"), new byte[100]);
    Files.write(directory.resolve("grant"), new byte[ShmLayout.GRANT_SIZE]);
    assertThat(LeasePages.in(directory, null).adopted()).isFalse();
    assertThat(LeasePages.in(directory, null).adopted()).isTrue();
  }

  @Test
  void whereThereIsNoRoomNothingIsLeftBehind() throws IOException {
    // A directory of this name prevents the creation of the file.
    Files.createDirectories(directory.resolve("grant/in the way"));
    assertThatThrownBy(() -> LeasePages.in(directory, null)).isInstanceOf(VgpuException.class);
    assertThat(directory.resolve("report")).doesNotExist();
  }

  @Test
  void pagesOfAnotherLeaseAreNotTakenForItsOwn() throws Exception {
    Path other = Files.createDirectory(directory.resolve("other"));
    LeasePages.in(other, null).grant().setLong(GRANT_LIMIT, 7);
    LeasePages.in(directory, null);
    for (String page : new String[] {"report", "grant"}) {
      Files.delete(directory.resolve(page));
      Files.createSymbolicLink(directory.resolve(page), other.resolve(page));
    }
    LeasePages pages = LeasePages.in(directory, null);
    assertThat(pages.adopted()).isFalse();
    assertThat(pages.grant().longAt(GRANT_LIMIT)).isZero();
    assertThat(LeasePages.in(other, null).grant().longAt(GRANT_LIMIT)).isEqualTo(7);
  }

  @Test
  void pipeInPlaceOfTheReportIsNotWaitedFor() throws Exception {
    LeasePages.in(directory, null);
    Path report = directory.resolve("report");
    Files.delete(report);
    assertThat(new ProcessBuilder("mkfifo", report.toString()).start().waitFor()).isZero();
    assertThatThrownBy(() -> LeasePages.in(directory, null))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("no file");
  }
}
