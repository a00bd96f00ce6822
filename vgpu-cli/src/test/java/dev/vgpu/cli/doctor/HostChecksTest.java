package dev.vgpu.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HostChecksTest {
  private static final String CLOCK =
      "sys/devices/system/clocksource/clocksource0/current_clocksource";

  @TempDir private Path root;

  private void file(String path, String text) throws IOException {
    Files.createDirectories(root.resolve(path).getParent());
    Files.writeString(root.resolve(path), text);
  }

  private Check check(String name) {
    return new HostChecks(root)
        .all().stream().filter(each -> each.name().equals(name)).findFirst().orElseThrow();
  }

  private void limit(String locked) throws IOException {
    file(
        "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\n"
            + "Max locked memory         "
            + locked
            + "                65536                bytes\n");
  }

  @Test
  void goodMachineNeedsNothing() throws IOException {
    limit("unlimited");
    file("sys/fs/cgroup/cgroup.controllers", "cpu memory");
    file(CLOCK, "tsc\n");
    file(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n");
    file("dev/nvidia0", "");
    file("dev/nvidiactl", "");
    assertThat(new HostChecks(root).all())
        .allSatisfy(each -> assertThat(each.level()).as("%s", each).isEqualTo(Check.Level.GOOD))
        .allSatisfy(each -> assertThat(each.remedy()).isEmpty());
    assertThat(check("driver").found()).isEqualTo("NVIDIA kernel driver 580.65.06");
  }

  @Test
  void whatCouldBeBetterIsSaidWithARemedy() throws IOException {
    limit("65536");
    file("sys/fs/cgroup/memory/tasks", "");
    file(CLOCK, "hpet\n");
    assertThat(check("locked-memory").found()).isEqualTo("64 KiB");
    assertThat(check("cgroup").found()).isEqualTo("version 1");
    assertThat(check("clock").found()).isEqualTo("hpet");
    for (String name : new String[] {"locked-memory", "cgroup", "clock"}) {
      assertThat(check(name).level()).as(name).isEqualTo(Check.Level.POOR);
      assertThat(check(name).remedy()).as(name).isNotEmpty();
    }
    limit("99999999999999999999999");
    assertThat(check("locked-memory").level()).isEqualTo(Check.Level.POOR);
  }

  @Test
  void containerThatWasStartedWithoutItsGpusIsBad() throws IOException {
    file("proc/driver/nvidia/version", "no number here");
    assertThat(check("driver").level()).isEqualTo(Check.Level.POOR);
    assertThat(check("devices").level()).isEqualTo(Check.Level.BAD);
    assertThat(check("devices").remedy()).contains("nvidia-modprobe");
    file(".dockerenv", "");
    assertThat(check("devices").found()).contains("in a container");
    assertThat(check("devices").remedy()).contains("--gpus");
  }

  @Test
  void nothingAtAllIsSaidAsWell() {
    assertThat(new HostChecks(root.resolve("nothing")).all()).hasSize(5);
  }
}
