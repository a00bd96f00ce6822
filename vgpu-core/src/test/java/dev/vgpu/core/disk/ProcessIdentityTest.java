package dev.vgpu.core.disk;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.testing.ReusedPid;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProcessIdentityTest {
  @Test
  void thisProcessIsAlive() {
    ProcessIdentity self = ProcessIdentity.current();
    assertThat(self.pid()).isEqualTo(ProcessHandle.current().pid());
    assertThat(self.start()).isPositive();
    assertThat(self.isAlive()).isTrue();
  }

  @Test
  void anotherProcessOfTheSameNumberIsNotThisOne() {
    ProcessIdentity self = ProcessIdentity.current();
    assertThat(new ProcessIdentity(self.pid(), self.start() + 1).isAlive()).isFalse();
  }

  @Test
  void processIsOfTheUserWhoStartedItAndNoOther() throws Exception {
    ProcessIdentity self = ProcessIdentity.current();
    UserPrincipal user = Files.getOwner(Path.of("/proc/self"));
    UserPrincipal other =
        Path.of("/proc")
            .getFileSystem()
            .getUserPrincipalLookupService()
            .lookupPrincipalByName("61234");
    assertThat(self.isOf(user)).isTrue();
    assertThat(self.isOf(other)).isFalse();
    assertThat(new ProcessIdentity(self.pid(), self.start() + 1).isOf(user)).isFalse();
    assertThat(new ProcessIdentity(0, 0).isOf(user)).isFalse();
  }

  @Test
  void processThatHasEndedIsDead() throws Exception {
    Process process = new ProcessBuilder("cat").start();
    ProcessIdentity identity = ProcessIdentity.of(process.pid());
    assertThat(identity.isAlive()).isTrue();
    process.destroyForcibly();
    process.waitFor();
    assertThat(identity.isAlive()).isFalse();
    assertThat(new ProcessIdentity(0, 0).isAlive()).isFalse();
  }

  @Test
  void processWithoutDescriptorsKnowsWhoIsAliveAndWhoIsDead() throws Exception {
    Process process =
        new ProcessBuilder(
                "sh",
                "-c",
                "ulimit -n 256 && exec \"$@\"",
                "sh",
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                WithoutDescriptors.class.getName())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    assertThat(process.inputReader().lines())
        .containsExactly("before ALIVE DEAD", "without ALIVE DEAD", "after ALIVE DEAD");
    assertThat(process.waitFor()).isZero();
  }

  /** Prints the states of itself and of an ended process, before and after descriptors run out. */
  static final class WithoutDescriptors {
    public static void main(String[] arguments) throws Exception {
      Process process = new ProcessBuilder("cat").start();
      ProcessIdentity dead = ProcessIdentity.of(process.pid());
      process.destroyForcibly();
      process.waitFor();
      ProcessIdentity self = ProcessIdentity.current();
      List<String> told = new ArrayList<>();
      tell(told, "before", self, dead);
      List<FileInputStream> open = new ArrayList<>();
      try {
        while (true) {
          open.add(new FileInputStream("/dev/null"));
        }
      } catch (IOException e) {
        tell(told, "without", self, dead);
      }
      for (FileInputStream each : open) {
        each.close();
      }
      tell(told, "after", self, dead);
      told.forEach(System.out::println);
    }

    private static void tell(
        List<String> told, String when, ProcessIdentity self, ProcessIdentity dead) {
      told.add(when + " " + self.state() + " " + dead.state());
    }
  }

  @Test
  void ownNumberIsTheInnermost() {
    assertThat(ProcessIdentity.parseOwnPid("Name:\tjava\nPid:\t7\nNSpid:\t4711\nNSpgid:\t1\n"))
        .hasValue(4711L);
    assertThat(ProcessIdentity.parseOwnPid("Pid:\t7\nNSpid:\t4711\t52\t3\nNSpgid:\t1\n"))
        .hasValue(3L);
    assertThat(ProcessIdentity.parseOwnPid("Name:\tNSpid:\nPid:\t7\n")).isEmpty();
    assertThat(ProcessIdentity.parseOwnPid("Pid:\t7\nNSpid:\tx\n")).isEmpty();
    assertThat(ProcessIdentity.parseOwnPid("Pid:\t7\nNSpid:\t47")).isEmpty();
  }

  @Test
  void processThatHasTheNumberOfAnEndedChildIsNotThatChild() throws Exception {
    Process child = new ProcessBuilder("sleep", "60").start();
    ProcessIdentity alive = ProcessIdentity.of(child);
    assertThat(alive.state()).isEqualTo(ProcessIdentity.State.ALIVE);
    assertThat(alive).isEqualTo(ProcessIdentity.of(child.pid()));
    child.destroyForcibly().waitFor();
    Optional<Process> other = ReusedPid.start(child.pid(), "sleep", "60");
    while (other.isPresent() && ProcessIdentity.of(child.pid()).equals(alive)) {
      int ignored = other.get().destroyForcibly().waitFor(); // started within the same clock tick
      other = ReusedPid.start(child.pid(), "sleep", "60");
    }
    try {
      assertThat(ProcessIdentity.of(child).start()).isZero();
      assertThat(ProcessIdentity.of(child).isAlive()).isFalse();
      assertThat(alive.isAlive()).isFalse();
    } finally {
      other.ifPresent(Process::destroyForcibly);
    }
  }

  @Test
  void frozenCgroupIsSeen(@TempDir Path directory) throws IOException {
    Path process = Files.createDirectories(directory.resolve("proc/5"));
    assertThat(ProcessIdentity.isFrozen(process, directory)).isFalse();
    Files.writeString(process.resolve("cgroup"), "3:freezer:/a\n0::/pods/b\n");
    assertThat(ProcessIdentity.isFrozen(process, directory)).isFalse();
    Path group = Files.createDirectories(directory.resolve("pods/b"));
    Files.writeString(group.resolve("cgroup.events"), "populated 1\nfrozen 0\n");
    assertThat(ProcessIdentity.isFrozen(process, directory)).isFalse();
    Path beside = Files.createDirectories(directory.resolve("unified/pods/b"));
    Files.writeString(beside.resolve("cgroup.events"), "populated 1\nfrozen 1\n");
    assertThat(ProcessIdentity.isFrozen(process, directory)).isTrue();
    Files.writeString(group.resolve("cgroup.events"), "populated 1\nfrozen 1\n");
    assertThat(ProcessIdentity.isFrozen(process, directory)).isTrue();
  }
}
