package dev.vgpu.cuda.pages;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.layout.ShmLayout.Slot;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class Level2NotesTest {
  @TempDir Path runDirectory;

  private Map<String, String> environment() {
    return Map.of("VGPU_RUN_DIR", runDirectory.toString());
  }

  @Test
  void withoutProgramsItSaysWhenItIsTried() {
    assertThat(Level2Notes.of(environment())).singleElement().asString().contains("tried when");
  }

  @Test
  void theSettingIsNamed() {
    Map<String, String> off = Map.of("VGPU_RUN_DIR", runDirectory.toString(), "VGPU_LEVEL2", "off");
    assertThat(Level2Notes.of(off)).singleElement().asString().contains("VGPU_LEVEL2");
  }

  @Test
  void eachProcessHasItsStateAndItsReason() throws IOException {
    ByteBuffer page = ByteBuffer.allocate(ShmLayout.REPORT_SIZE).order(ByteOrder.LITTLE_ENDIAN);
    process(page, 1, 11, ShmLayout.LEVEL2_READY, 0, 580 << 16 | 95);
    process(page, 2, 22, ShmLayout.LEVEL2_OFF, ShmLayout.LEVEL2_WHY_VERSION, 999 << 16);
    process(page, 3, 33, ShmLayout.LEVEL2_OFF, 77, 0);
    Path lease = Files.createDirectories(runDirectory.resolve("leases/a"));
    Files.write(lease.resolve("report"), page.array());
    Path cut = Files.createDirectories(runDirectory.resolve("leases/cut"));
    Files.write(cut.resolve("report"), new byte[100]);

    assertThat(Level2Notes.of(environment()))
        .satisfiesExactly(
            line -> assertThat(line).contains("lease a", "pid 11", "580.95", "ready"),
            line -> assertThat(line).contains("pid 22", "version is not one of"),
            line -> assertThat(line).contains("pid 33", "reason 77"));
  }

  @Test
  void aDriverThatIsNotInTheTablesIsNamed() throws IOException {
    Path loaded = runDirectory.resolve("version");
    Files.writeString(loaded, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  612.34.01  Release");
    assertThat(Level2Notes.of(environment(), loaded).get(0))
        .contains("off with driver 612.34.01", "not one of 535, 550", "all else works");
    Files.writeString(loaded, "no number");
    assertThat(Level2Notes.of(environment(), loaded).get(0)).contains("of unknown version");
    Files.writeString(loaded, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Release");
    assertThat(Level2Notes.of(environment(), loaded))
        .singleElement()
        .asString()
        .contains("tried when");
  }

  /** The list is kept in C and in Java. */
  @Test
  void theKnownDriversAreThoseOfTheHooksTables() throws IOException {
    String source = Files.readString(Path.of("../vgpu-kmod/src/main/c/core/rm_decode.c"));
    List<Integer> inC =
        Pattern.compile("case (\\d+):")
            .matcher(source)
            .results()
            .map(row -> Integer.valueOf(row.group(1)))
            .toList();
    assertThat(inC).isNotEmpty().isEqualTo(Level2Notes.KNOWN);
  }

  private static void process(
      ByteBuffer page, int slot, int pid, int state, int reason, int driver) {
    int at = ShmLayout.SLOTS_OFFSET + slot * ShmLayout.SLOT_SIZE;
    page.putInt(at + Slot.STATE, ShmLayout.SLOT_ATTACHED);
    page.putInt(at + Slot.PID, pid);
    page.putInt(at + Slot.LEVEL2, state);
    page.putInt(at + Slot.LEVEL2_REASON, reason);
    page.putInt(at + Slot.LEVEL2_DRIVER, driver);
  }
}
