package dev.vgpu.core.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.vgpu.VgpuException;
import dev.vgpu.files.FileAccess;
import dev.vgpu.files.ProcessUser;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.FailureMode;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LeaseDirectoryTest {
  private static final VirtualGpuRequest REQUEST =
      VirtualGpuRequest.builder()
          .name("embed")
          .memory(MemorySize.ofMebibytes(7))
          .policy(SharePolicy.FIXED_SHARE)
          .computePercent(30)
          .preemptionClass(PreemptionClass.OFFLINE)
          .maxConcurrentCalls(3)
          .gpu(new GpuId("GPU-1 ü"))
          .part("3g.40gb:4")
          .failureMode(FailureMode.OPEN)
          .requires(
              Capabilities.builder()
                  .memory(Capabilities.Memory.EXACT)
                  .worksFor(Capabilities.Scope.PROCESS, Capabilities.Scope.VM)
                  .build())
          .build();

  @TempDir Path temporary;

  private static LeaseRecord record(String id) {
    return new LeaseRecord(
        id,
        List.of(new GpuId("GPU-1 ü"), new GpuId("GPU-2")),
        REQUEST,
        new ProcessIdentity(4, 5),
        Optional.of("fake"),
        List.of(new ProcessIdentity(6, 7), new ProcessIdentity(8, 9)));
  }

  @Test
  void leaseIsReadAsItWasWritten() throws Exception {
    try (LeaseDirectory leases = new LeaseDirectory(temporary)) {
      LeaseRecord written = record(leases.newId("embed"));
      leases.write(written);
      leases.write(written);
      assertThat(leases.readAll()).singleElement().satisfies(read -> isSame(read, written));
      leases.remove(written.id());
      leases.remove(written.id());
      assertThat(leases.readAll()).isEmpty();
      assertThat(leases.of(written.id())).doesNotExist();
    }
  }

  /** Only root can give files away. */
  @Test
  void aMemberEntersTheDirectoryOfItsLeaseAndWritesNothingThere() throws Exception {
    assumeTrue(ProcessUser.id() == 0);
    try (LeaseDirectory leases = new LeaseDirectory(temporary)) {
      LeaseRecord plain = record(leases.newId("embed"));
      LeaseRecord written =
          new LeaseRecord(
              plain.id(),
              plain.gpus(),
              plain.request(),
              plain.owner(),
              plain.backend(),
              plain.programs(),
              plain.suspension(),
              plain.chosen(),
              "a key",
              Optional.of(new Member("54321", "54322")));
      leases.write(written);
      leases.write(written);
      assertThat(leases.readAll()).singleElement().satisfies(read -> isSame(read, written));
      Path own = leases.of(written.id());
      assertThat(rights(own)).isEqualTo("rwxr-x--- 0 54322");
      assertThat(rights(own.resolve("lease.properties"))).isEqualTo("rw------- 0 0");
      Path marker = own.resolve(FileAccess.MEMBER);
      assertThat(marker).as("what its owner cannot write to").isSymbolicLink();
      assertThat(Files.readAttributes(marker, "unix:uid,gid", LinkOption.NOFOLLOW_LINKS))
          .containsEntry("uid", 54_321)
          .containsEntry("gid", 54_322);
      leases.remove(written.id());
      assertThat(own).doesNotExist();
    }
  }

  private static String rights(Path path) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(path))
        + " "
        + Files.getAttribute(path, "unix:uid")
        + " "
        + Files.getAttribute(path, "unix:gid");
  }

  private static void isSame(LeaseRecord read, LeaseRecord written) {
    assertThat(read).usingRecursiveComparison().isEqualTo(written);
  }

  /** Whatever the lack hits, the directory or a file in it: the lease may live. */
  @Test
  void leaseThatCannotBeReadForLackOfDescriptorsIsNotSetAside() throws Exception {
    Process process =
        new ProcessBuilder(
                "sh",
                "-c",
                "ulimit -n 256 && exec \"$@\"",
                "sh",
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                WithoutDescriptors.class.getName(),
                temporary.toString())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    assertThat(process.inputReader().lines())
        .containsExactly("[embed-1]", "refused", "refused", "refused", "[embed-1]", "[embed-1]");
    assertThat(process.waitFor()).isZero();
  }

  /** Prints the leases that it reads while none, one, two or three descriptors are left. */
  static final class WithoutDescriptors {
    public static void main(String[] arguments) throws Exception {
      List<String> told = new ArrayList<>();
      List<FileInputStream> open = new ArrayList<>();
      try (LeaseDirectory leases = new LeaseDirectory(Path.of(arguments[0]))) {
        leases.write(record(leases.newId("embed")));
        told.add(read(leases));
        try {
          while (true) {
            open.add(new FileInputStream("/dev/null"));
          }
        } catch (IOException e) {
          for (int left = 0; left <= 3; left++) {
            told.add(read(leases));
            open.remove(0).close();
          }
        }
        for (FileInputStream each : open) {
          each.close();
        }
        told.add(read(leases));
      }
      told.forEach(System.out::println);
    }

    private static String read(LeaseDirectory leases) {
      try {
        return leases.readAll().stream().map(LeaseRecord::id).toList().toString();
      } catch (VgpuException e) {
        return "refused";
      }
    }
  }

  @Test
  void namesAreNeverGivenTwice() throws Exception {
    for (int i = 1; i <= 3; i++) {
      try (LeaseDirectory leases = new LeaseDirectory(temporary)) {
        assertThat(leases.newId("embed")).isEqualTo("embed-" + i);
      }
    }
    Files.writeString(temporary.resolve("counter"), "what?");
    Files.createDirectory(temporary.resolve("embed-1"));
    try (LeaseDirectory leases = new LeaseDirectory(temporary)) {
      assertThat(leases.newId("embed")).isEqualTo("embed-2");
    }
  }

  @Test
  void halfMadeLeaseIsCleanedUp() throws Exception {
    Path half = Files.createDirectory(temporary.resolve("embed-1"));
    Files.writeString(half.resolve("lease.properties.new"), "id=embed-1");
    try (LeaseDirectory leases = new LeaseDirectory(temporary)) {
      assertThat(leases.readAll()).isEmpty();
    }
    assertThat(half).doesNotExist();
  }

  @Test
  void leaseThatCannotBeWrittenIsRefused() throws Exception {
    try (LeaseDirectory leases = new LeaseDirectory(temporary)) {
      Files.createDirectories(temporary.resolve("embed-1").resolve("lease.properties.new"));
      assertThatThrownBy(() -> leases.write(record("embed-1")))
          .isInstanceOf(VgpuException.class)
          .hasMessageContaining("cannot be written");
    }
  }

  @Test
  void whoHasGivenTheSeatUpSendsToTheNextHolder() throws Exception {
    LeaseDirectory leases = new LeaseDirectory(temporary);
    LeaseRecord written = record(leases.newId("embed"));
    leases.close();
    assertThatThrownBy(() -> leases.newId("embed")).isInstanceOf(SeatLostException.class);
    assertThatThrownBy(() -> leases.write(written)).isInstanceOf(SeatLostException.class);
  }

  @Test
  void whatLiesInItsWayIsNeitherWaitedForNorWrittenTo() throws Exception {
    Path foreign = Files.writeString(temporary.resolve("foreign"), "stays");
    Path counter = temporary.resolve("counter");
    assertThat(new ProcessBuilder("mkfifo", counter.toString()).start().waitFor()).isZero();
    try (LeaseDirectory leases = new LeaseDirectory(temporary)) {
      assertThat(leases.newId("embed")).isEqualTo("embed-1");
    }
    Files.delete(counter);
    Files.createSymbolicLink(counter, foreign);
    try (LeaseDirectory leases = new LeaseDirectory(temporary)) {
      LeaseRecord written = record(leases.newId("embed"));
      Path part = Files.createDirectory(leases.of(written.id())).resolve("lease.properties.new");
      Files.createSymbolicLink(part, foreign);
      leases.write(written);
      assertThat(new ProcessBuilder("mkfifo", part.toString()).start().waitFor()).isZero();
      leases.write(written);
      assertThat(leases.readAll()).singleElement().satisfies(read -> isSame(read, written));
    }
    assertThat(foreign).hasContent("stays");
  }
}
