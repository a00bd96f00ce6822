package dev.vgpu.cuda.pages;

import static dev.vgpu.cuda.layout.ShmLayout.REPORT_SIZE;
import static dev.vgpu.cuda.layout.ShmLayout.SLOTS_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_ATTACHED;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_COUNT;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_SIZE;
import static java.nio.charset.StandardCharsets.ISO_8859_1;

import dev.vgpu.cuda.layout.HookEnvironment;
import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.layout.ShmLayout.Slot;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Notes on preemption inside kernels: whether it is switched off here, and whether each attached
 * process can be stopped, or why not. Read from the pages, as untrusted input. Unreadable pages are
 * left out.
 */
public final class Level2Notes {
  private static final String HEAD = "preemption inside kernels: ";

  private static final Path LOADED_DRIVER = Path.of("/proc/driver/nvidia/version");
  private static final Pattern VERSION = Pattern.compile("\\b(\\d{3,4})\\.\\d+(\\.\\d+)?");

  /** As in the table of the kernel module's core, {@code rm_decode.c}; a test compares both. */
  static final List<Integer> KNOWN = List.of(535, 550, 555, 560, 565, 570, 575, 580, 590, 595);

  private Level2Notes() {}

  /** {@return one line per note} */
  public static List<String> of(Map<String, String> environment) {
    return of(environment, LOADED_DRIVER);
  }

  /**
   * {@return one line per note}
   *
   * @param loaded the kernel's file about the NVIDIA driver that is loaded; it may be absent
   */
  public static List<String> of(Map<String, String> environment, Path loaded) {
    List<String> notes = new ArrayList<>();
    unknown(loaded).ifPresent(notes::add);
    if ("off".equals(environment.get(HookEnvironment.VGPU_LEVEL2))) {
      notes.add(HEAD + "switched off by VGPU_LEVEL2");
    }
    Path leases = runDirectory(environment).resolve("leases");
    if (Files.isDirectory(leases)) {
      try (DirectoryStream<Path> directories = Files.newDirectoryStream(leases)) {
        for (Path directory : directories) {
          read(directory, notes);
        }
      } catch (IOException e) {
        notes.add(HEAD + "cannot look at the leases: " + e.getMessage());
      }
    }
    if (notes.isEmpty()) {
      notes.add(HEAD + "tried when an offline program has work; none is here now");
    }
    return notes;
  }

  /** {@return a note if the driver is not in the tables; the rest works with it} */
  private static Optional<String> unknown(Path loaded) {
    String text;
    try {
      text = Files.readString(loaded, ISO_8859_1);
    } catch (IOException e) {
      return Optional.empty();
    }
    Matcher version = VERSION.matcher(text);
    if (version.find() && KNOWN.contains(Integer.valueOf(version.group(1)))) {
      return Optional.empty();
    }
    return Optional.of(
        HEAD
            + "off with driver "
            + (text.isBlank() || !version.reset().find() ? "of unknown version" : version.group())
            + ": "
            + reason(ShmLayout.LEVEL2_WHY_VERSION)
            + "; all else works; a driver of these, or a newer vgpu, brings it");
  }

  private static Path runDirectory(Map<String, String> environment) {
    String given = environment.getOrDefault(HookEnvironment.VGPU_RUN_DIR, "");
    if (!given.isEmpty()) {
      return Path.of(given);
    }
    String session = environment.getOrDefault("XDG_RUNTIME_DIR", "");
    return session.isEmpty() ? Path.of("/run/vgpu") : Path.of(session, "vgpu");
  }

  private static void read(Path directory, List<String> notes) {
    Path file = directory.resolve(LeasePages.REPORT);
    try {
      if (!Files.isReadable(file) || Files.size(file) != REPORT_SIZE) {
        return;
      }
      ByteBuffer page = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
      for (int slot = 1; slot < SLOT_COUNT && page.capacity() == REPORT_SIZE; slot++) {
        int at = SLOTS_OFFSET + slot * SLOT_SIZE;
        if (page.getInt(at + Slot.STATE) == SLOT_ATTACHED) {
          notes.add(HEAD + "lease " + directory.getFileName() + " " + describe(page, at));
        }
      }
    } catch (IOException e) {
      notes.add(HEAD + "cannot read: file=" + file + " (" + e.getMessage() + ")");
    }
  }

  private static String describe(ByteBuffer page, int at) {
    int driver = page.getInt(at + Slot.LEVEL2_DRIVER);
    String process =
        "pid "
            + Integer.toUnsignedString(page.getInt(at + Slot.PID))
            + (driver == 0 ? "" : ", driver " + (driver >>> 16) + "." + (driver & 0xffff));
    return switch (page.getInt(at + Slot.LEVEL2)) {
      case ShmLayout.LEVEL2_READY ->
          process + ": ready, stopped " + page.getLong(at + Slot.LEVEL2_STOPS) + " times so far";
      case ShmLayout.LEVEL2_STOPPED -> process + ": stopped now";
      default -> process + ": off, " + reason(page.getInt(at + Slot.LEVEL2_REASON));
    };
  }

  private static String known() {
    return KNOWN.stream().map(String::valueOf).collect(Collectors.joining(", "));
  }

  /** {@return the reason in words, with a remedy where there is one} */
  public static String reason(int code) {
    return switch (code) {
      case ShmLayout.LEVEL2_WHY_NONE -> "no work yet, so it was not tried";
      case ShmLayout.LEVEL2_WHY_SETTING -> "switched off by VGPU_LEVEL2";
      case ShmLayout.LEVEL2_WHY_CLASS -> "not needed: only offline programs are stopped";
      case ShmLayout.LEVEL2_WHY_NO_IMPORT -> "the driver's import of ioctl cannot be redirected";
      case ShmLayout.LEVEL2_WHY_NO_CHANNELS -> "the driver made no channel group that was seen";
      case ShmLayout.LEVEL2_WHY_VERSION ->
          "the driver's version is not one of " + known() + ": its layouts are not known";
      case ShmLayout.LEVEL2_WHY_REFUSED -> "the driver refused to stop or to resume its channels";
      case ShmLayout.LEVEL2_WHY_SLOW -> "the driver took too long to stop or to resume";
      case ShmLayout.LEVEL2_WHY_TENANTS ->
          "several virtual GPUs are in one process, whose contexts they share: none can be stopped"
              + " alone";
      case ShmLayout.LEVEL2_WHY_THREAD -> "no thread could be started for it";
      case ShmLayout.LEVEL2_WHY_NO_EFFECT -> "stopped work kept running";
      case ShmLayout.LEVEL2_WHY_TABLE -> "the program has more channels than can be followed";
      default -> "reason " + code;
    };
  }
}
