package dev.vgpu.nvml;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.GpuId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * What was made for a lease, or is about to be. Immutable.
 *
 * @param lease whose it is
 * @param gpu the GPU that it is cut from
 * @param profileId its kind
 * @param start its first memory slice
 * @param before the numbers of the instances that there were, none of which is ours
 * @param made the instance; empty: it is about to be made
 */
record MigRecord(
    String lease,
    GpuId gpu,
    int profileId,
    int start,
    List<Integer> before,
    Optional<Made> made) {
  /**
   * An instance that we made.
   *
   * @param instance NVML's number of it
   * @param device the MIG device that it is
   */
  record Made(int instance, GpuId device) {}

  MigRecord {
    before = List.copyOf(before);
  }

  MigRecord with(Made now) {
    return new MigRecord(lease, gpu, profileId, start, before, Optional.of(now));
  }

  private String text() {
    String text =
        "gpu="
            + gpu
            + "\nprofile="
            + profileId
            + "\nstart="
            + start
            + "\nbefore="
            + before.stream().map(String::valueOf).collect(Collectors.joining(" "))
            + "\n";
    return text
        + made.map(now -> "instance=" + now.instance() + "\ndevice=" + now.device() + "\n")
            .orElse("")
        + "end\n";
  }

  /** Writes it, so that it is there whatever dies next: the old one or the new one, and whole. */
  void write(Path directory) throws IOException {
    Files.createDirectories(directory);
    Path fresh = directory.resolve("." + lease + ".new");
    try (FileChannel file =
        FileChannel.open(
            fresh,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      ByteBuffer bytes = ByteBuffer.wrap(text().getBytes(UTF_8));
      while (bytes.hasRemaining()) {
        file.write(bytes);
      }
      file.force(true);
    }
    Files.move(
        fresh,
        directory.resolve(lease),
        StandardCopyOption.ATOMIC_MOVE,
        StandardCopyOption.REPLACE_EXISTING);
    try (FileChannel itself = FileChannel.open(directory, StandardOpenOption.READ)) {
      itself.force(true);
    }
  }

  static void remove(Path directory, String lease) throws IOException {
    Files.deleteIfExists(directory.resolve(lease));
  }

  /** All that there are; what cannot be read is left out. */
  static Map<String, MigRecord> all(Path directory) throws IOException {
    Map<String, MigRecord> records = new HashMap<>();
    if (!Files.isDirectory(directory)) {
      return records;
    }
    try (var files = Files.newDirectoryStream(directory)) {
      for (Path file : files) {
        String name = String.valueOf(file.getFileName());
        if (!name.startsWith(".")) {
          parse(name, Files.readString(file)).ifPresent(record -> records.put(name, record));
        }
      }
    }
    return records;
  }

  static Optional<MigRecord> parse(String lease, String text) {
    Map<String, String> values = new HashMap<>();
    for (String line : text.split("\n", -1)) {
      int equals = line.indexOf('=');
      if (equals > 0) {
        values.put(line.substring(0, equals), line.substring(equals + 1));
      }
    }
    try {
      Optional<Made> made =
          values.containsKey("device")
              ? Optional.of(
                  new Made(number(values, "instance"), new GpuId(values.getOrDefault("device", ""))))
              : Optional.empty();
      List<Integer> before =
          Arrays.stream(values.getOrDefault("before", "").split(" ", -1))
              .filter(word -> !word.isEmpty())
              .map(Integer::valueOf)
              .toList();
      return text.endsWith("end\n")
          ? Optional.of(
              new MigRecord(
                  lease,
                  new GpuId(values.getOrDefault("gpu", "")),
                  number(values, "profile"),
                  number(values, "start"),
                  before,
                  made))
          : Optional.empty();
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }

  private static int number(Map<String, String> values, String name) {
    return Integer.parseInt(values.getOrDefault(name, ""));
  }
}
