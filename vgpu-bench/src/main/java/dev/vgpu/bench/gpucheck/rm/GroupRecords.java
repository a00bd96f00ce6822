package dev.vgpu.bench.gpucheck.rm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeMap;

/**
 * What {@code libvgpu_rm.so} has recorded of a program's channel groups for {@code vgpu-turns}: the
 * objects that the program has. Immutable.
 *
 * @param objects the objects, in the order in which they were made
 * @param scheduled the objects for which a GPFIFO_SCHEDULE was recorded
 * @param records how many records there are
 */
public record GroupRecords(List<Made> objects, Set<Made> scheduled, int records) {
  /** The size of {@code struct vgpu_rm_event}. */
  static final int BYTES = 40;

  private static final int MADE = 1;
  private static final int FREED = 2;
  private static final int SCHEDULED = 3;
  private static final int CLOSED = 5;
  private static final int ROOT = 0x41;
  private static final int GROUP = 0xa06c;

  /**
   * An object.
   *
   * @param fd a descriptor of the file through which it was made
   * @param file the file's number
   * @param engine of a channel group
   */
  public record Made(
      int fd, long file, int client, int handle, int parent, int classNumber, int engine) {
    boolean isGroup() {
      return classNumber == GROUP;
    }

    boolean isChannel() {
      return !isGroup() && (classNumber & 0xff) == 0x6f;
    }
  }

  /** Copies the collections. */
  public GroupRecords {
    objects = List.copyOf(objects);
    scheduled = Set.copyOf(scheduled);
  }

  /**
   * Reads the records of a tenant's programs.
   *
   * @param directory their VGPU_RM_EVENTS
   * @return what they have
   * @throws IOException if the directory or a file cannot be read
   */
  public static GroupRecords read(Path directory) throws IOException {
    List<byte[]> files = new ArrayList<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(directory, "vgpu-rm-*")) {
      for (Path each : all) {
        files.add(Files.readAllBytes(each));
      }
    }
    int size = files.stream().mapToInt(each -> each.length).sum();
    ByteBuffer all = ByteBuffer.allocate(size);
    files.forEach(all::put);
    return parse(all.array());
  }

  /** A record that is cut off at the end is left out. */
  static GroupRecords parse(byte[] bytes) {
    ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    List<Made> objects = new ArrayList<>();
    Set<Made> scheduled = new HashSet<>();
    int records = 0;
    for (; in.remaining() >= BYTES; records++) {
      int kind = in.getInt();
      int fd = in.getInt();
      long file = in.getLong();
      int client = in.getInt();
      int parent = in.getInt();
      int object = in.getInt();
      int classNumber = in.getInt();
      int value = in.getInt();
      in.getInt();
      switch (kind) {
        case MADE -> {
          if (classNumber != 0 && classNumber != ROOT) {
            objects.add(new Made(fd, file, client, object, parent, classNumber, value));
          }
        }
        case FREED ->
            objects.removeIf(
                each ->
                    each.client == client
                        && (object == client || each.handle == object || each.parent == object));
        case SCHEDULED ->
            objects.stream()
                .filter(each -> each.client == client && each.handle == object)
                .forEach(scheduled::add);
        case CLOSED -> objects.removeIf(each -> each.file == file);
        default -> {
          // The program's own FIFO_DISABLE_CHANNELS.
        }
      }
    }
    return new GroupRecords(objects, scheduled, records);
  }

  /** {@return the objects as the mode {@code stop} of the C program reads them} */
  public String handles() {
    StringBuilder text = new StringBuilder();
    for (Made each : objects) {
      text.append(
          String.format(
              Locale.ROOT,
              "%d %x %x %x %x%n",
              each.fd,
              each.client,
              each.handle,
              each.parent,
              each.classNumber));
    }
    return text.toString();
  }

  /** {@return the numbers of groups, scheduled groups and channels of each engine, in words} */
  public String summary() {
    TreeMap<Integer, int[]> engines = new TreeMap<>();
    for (Made group : objects) {
      if (!group.isGroup()) {
        continue;
      }
      int[] counts = engines.computeIfAbsent(group.engine, key -> new int[3]);
      List<Made> channels = objects.stream().filter(each -> isOf(each, group)).toList();
      counts[0]++;
      counts[1] +=
          scheduled.contains(group) || channels.stream().anyMatch(scheduled::contains) ? 1 : 0;
      counts[2] += channels.size();
    }
    StringBuilder text = new StringBuilder(records + " records");
    engines.forEach(
        (engine, counts) ->
            text.append(
                String.format(
                    Locale.ROOT,
                    "; engine %d: groups %d, scheduled %d, channels %d",
                    engine,
                    counts[0],
                    counts[1],
                    counts[2])));
    long alone =
        objects.stream()
            .filter(each -> each.isChannel() && objects.stream().noneMatch(to -> isOf(each, to)))
            .count();
    return text.append("; channels outside groups: ").append(alone).toString();
  }

  private static boolean isOf(Made channel, Made group) {
    return channel.isChannel()
        && group.isGroup()
        && channel.client == group.client
        && channel.parent == group.handle;
  }
}
