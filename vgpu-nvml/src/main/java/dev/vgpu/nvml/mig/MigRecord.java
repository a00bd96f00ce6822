package dev.vgpu.nvml.mig;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.files.TooLongException;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.files.UntrustedFileException;
import dev.vgpu.request.GpuId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An instance that was created for a lease, or is about to be created or destroyed. Immutable. NVML
 * does not tell who created an instance, so the record's {@link State} decides whether it is ours.
 *
 * @param lease the lease that it belongs to
 * @param gpu the GPU that it is part of
 * @param profileId its profile
 * @param start its first memory slice
 * @param before the numbers of the instances that existed before, none of which is ours
 * @param state the progress of the work on it
 * @param instance its NVML number, once it is known
 * @param device its MIG device, once it is known
 * @param terms what the lease takes of it
 */
record MigRecord(
    String lease,
    GpuId gpu,
    int profileId,
    int start,
    List<Integer> before,
    State state,
    Optional<Integer> instance,
    Optional<GpuId> device,
    Terms terms) {
  private static final Logger log = LoggerFactory.getLogger(MigRecord.class);
  private static final int MOST_BYTES = 64 << 10;

  /**
   * What a lease takes of its instance.
   *
   * @param computeSlices how many compute slices at least
   * @param bytes of the memory, which all leases in an instance share
   * @param isAlone whether no other lease may use the instance
   */
  record Terms(int computeSlices, long bytes, boolean isAlone) {}

  /** The least progress of the work on an instance. */
  enum State {
    /** About to be created. An instance at its place is ours only if it has no compute instance. */
    INTENDED,
    /** Created; about to get its compute instance. */
    BEGUN,
    /** About to get a compute instance in an instance that was created for another lease. */
    JOINING,
    /** Complete. */
    MADE,
    /** Its compute instance is gone; it is about to be destroyed too. Like {@link #INTENDED}. */
    BARE
  }

  MigRecord {
    before = List.copyOf(before);
  }

  static MigRecord intended(
      String lease, GpuId gpu, int profileId, int start, List<Integer> before, Terms terms) {
    return new MigRecord(
        lease,
        gpu,
        profileId,
        start,
        before,
        State.INTENDED,
        Optional.empty(),
        Optional.empty(),
        terms);
  }

  static MigRecord joining(String lease, GpuId gpu, MigState.Instance host, Terms terms) {
    return new MigRecord(
        lease,
        gpu,
        host.profileId(),
        host.start(),
        List.of(),
        State.JOINING,
        Optional.of(host.id()),
        Optional.empty(),
        terms);
  }

  private MigRecord as(State next, Optional<Integer> id, Optional<GpuId> as) {
    return new MigRecord(lease, gpu, profileId, start, before, next, id, as, terms);
  }

  MigRecord begun(int id) {
    return as(State.BEGUN, Optional.of(id), Optional.empty());
  }

  MigRecord made(GpuId as) {
    return as(State.MADE, instance, Optional.of(as));
  }

  MigRecord bare() {
    return as(State.BARE, instance, device);
  }

  /** {@return the same record under another name} */
  MigRecord named(String name) {
    return new MigRecord(name, gpu, profileId, start, before, state, instance, device, terms);
  }

  /** {@return the same record with this memory} */
  MigRecord holding(long bytes) {
    return new MigRecord(
        lease,
        gpu,
        profileId,
        start,
        before,
        state,
        instance,
        device,
        new Terms(terms.computeSlices(), bytes, terms.isAlone()));
  }

  /** {@return whether both are about the same instance} */
  boolean shares(MigRecord other) {
    return gpu.equals(other.gpu) && instance.isPresent() && instance.equals(other.instance);
  }

  /** {@return whether an instance at its place may be foreign, and just about to be completed} */
  boolean isUnclear() {
    return state == State.INTENDED || state == State.BARE;
  }

  /** {@return the instance of this record, if it exists and is not foreign} */
  Optional<MigState.Instance> find(MigState of) {
    return of.instances().stream()
        .filter(each -> each.profileId() == profileId && each.start() == start)
        .filter(each -> instance.isEmpty() || instance.get() == each.id())
        .filter(each -> state != State.INTENDED || !before.contains(each.id()))
        .filter(each -> !isUnclear() || each.parts().isEmpty())
        .filter(
            each ->
                state != State.MADE
                    || each.parts().isEmpty()
                    || device.filter(each::has).isPresent())
        .findFirst();
  }

  private String text() {
    StringBuilder text = new StringBuilder();
    text.append("gpu=").append(gpu).append("\nprofile=").append(profileId);
    text.append("\nstart=").append(start).append("\nbefore=");
    text.append(before.stream().map(String::valueOf).collect(Collectors.joining(" ")));
    text.append("\nstate=").append(state);
    instance.ifPresent(id -> text.append("\ninstance=").append(id));
    device.ifPresent(id -> text.append("\ndevice=").append(id));
    text.append("\nslices=").append(terms.computeSlices());
    text.append("\nbytes=").append(terms.bytes()).append("\nalone=").append(terms.isAlone());
    return text.append("\nend\n").toString();
  }

  /** Writes it atomically and durably: after a crash, the old or the new one is whole. */
  void write(Path directory) throws IOException {
    Files.createDirectories(directory);
    Path fresh = directory.resolve("." + lease + ".new");
    Files.deleteIfExists(fresh); // whatever it is: a pipe, or a link to another file
    try (FileChannel file =
        FileChannel.open(fresh, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
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

  /** Gives what is written another name, in place of a record that may have it. */
  void rename(Path directory, String name) throws IOException {
    Files.move(
        directory.resolve(lease),
        directory.resolve(name),
        StandardCopyOption.ATOMIC_MOVE,
        StandardCopyOption.REPLACE_EXISTING);
  }

  static void remove(Path directory, String lease) throws IOException {
    Files.deleteIfExists(directory.resolve(lease));
  }

  /** {@return all records} Skips files that are no records, or that are removed meanwhile. */
  static Map<String, MigRecord> all(Path directory) throws IOException {
    Map<String, MigRecord> records = new HashMap<>();
    if (!Files.isDirectory(directory)) {
      return records;
    }
    try (var files = Files.newDirectoryStream(directory)) {
      for (Path file : files) {
        String name = String.valueOf(file.getFileName());
        if (!name.startsWith(".") && Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
          text(file)
              .flatMap(text -> parse(name, text))
              .ifPresent(record -> records.put(name, record));
        }
      }
    }
    return records;
  }

  /** Accepts any bytes: one bad file must not hide the others. */
  private static Optional<String> text(Path file) throws IOException {
    try {
      return Optional.of(TrustedFiles.readText(file, MOST_BYTES));
    } catch (NoSuchFileException e) {
      return Optional.empty();
    } catch (TooLongException | UntrustedFileException e) {
      log.warn("what is no record of an instance is left out: {}", e.getMessage());
      return Optional.empty();
    }
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
                  State.valueOf(values.getOrDefault("state", "")),
                  Optional.ofNullable(values.get("instance")).map(Integer::valueOf),
                  Optional.ofNullable(values.get("device")).map(GpuId::new),
                  terms(values)))
          : Optional.empty();
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }

  /** Records without these fields are of a lease that has its instance alone. */
  private static Terms terms(Map<String, String> values) {
    return new Terms(
        Integer.parseInt(values.getOrDefault("slices", "1")),
        Long.parseLong(values.getOrDefault("bytes", "0")),
        Boolean.parseBoolean(values.getOrDefault("alone", "true")));
  }

  private static int number(Map<String, String> values, String name) {
    return Integer.parseInt(values.getOrDefault(name, ""));
  }
}
