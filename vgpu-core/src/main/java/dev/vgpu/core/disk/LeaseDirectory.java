package dev.vgpu.core.disk;

import dev.vgpu.VgpuException;
import dev.vgpu.core.wire.MalformedMessageException;
import dev.vgpu.files.FileAccess;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributeView;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The leases on disk: one directory per lease, with what the next holder of the seat must know.
 * Files are not trusted when they are read: a malformed one is set aside. One that cannot be read
 * says nothing about its lease, which may live. Owned by the seat's holder and guarded by its lock.
 */
public final class LeaseDirectory implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(LeaseDirectory.class);
  private static final String FILE = "lease.properties";
  private static final String BAD = ".bad";
  private static final long MOST_FILE_BYTES = 256 << 10;
  private static final int NUMBER_DIGITS = 19;

  /** The time of a record whose suspension is over. Setting it needs no room on the disk. */
  private static final FileTime GOES_ON = FileTime.fromMillis(0);

  private static final Set<PosixFilePermission> OWNER_READS =
      PosixFilePermissions.fromString("rw-------");

  private final Path directory;
  private volatile boolean closed;
  private final RandomAccessFile counter;
  private long number;

  /**
   * Opens the directory.
   *
   * @param directory an existing directory
   * @throws IOException if the lease counter cannot be opened
   */
  public LeaseDirectory(Path directory) throws IOException {
    this.directory = directory;
    Path file = directory.resolve("counter");
    removePlanted(file);
    this.counter = new RandomAccessFile(file.toFile(), "rw");
    this.number = Math.max(0, readNumber());
  }

  /**
   * Removes a link, pipe or device from the place of a file to be written: a link could redirect
   * the write, and a pipe could block it forever.
   */
  private static void removePlanted(Path file) throws IOException {
    if (Files.exists(file, LinkOption.NOFOLLOW_LINKS)
        && !Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
        && !Files.isDirectory(file, LinkOption.NOFOLLOW_LINKS)) {
      log.warn("removing a non-regular file: {}", file);
      Files.delete(file);
    }
  }

  private long readNumber() throws IOException {
    byte[] text = new byte[NUMBER_DIGITS];
    int length = Math.max(0, counter.read(text));
    try {
      return length == 0
          ? 0
          : Long.parseLong(new String(text, 0, length, StandardCharsets.US_ASCII).trim());
    } catch (NumberFormatException e) {
      log.warn("the counter of leases is not a number; it is counted on from the leases found");
      return 0;
    }
  }

  /**
   * {@return a name that no lease of this directory has or had}
   *
   * @param name the prefix of the new name
   * @throws SeatLostException if this process has given the seat up
   * @throws VgpuException if the counter cannot be written, for example on a full disk
   */
  public String newId(String name) {
    do {
      number++;
    } while (Files.exists(directory.resolve(name + "-" + number), LinkOption.NOFOLLOW_LINKS));
    try {
      counter.seek(0);
      counter.write(
          String.format(java.util.Locale.ROOT, "%" + NUMBER_DIGITS + "d", number)
              .getBytes(StandardCharsets.US_ASCII));
    } catch (IOException e) {
      checkOpen(); // if closed in the meantime, that is the cause
      throw new VgpuException("the lease cannot be written: " + e.getMessage(), e);
    }
    return name + "-" + number;
  }

  private void checkOpen() {
    if (closed) {
      throw SeatLostException.givenUp();
    }
  }

  /**
   * {@return the directory of a lease}
   *
   * @param id the virtual GPU's name
   */
  public Path of(String id) {
    return directory.resolve(id);
  }

  /**
   * Writes a lease atomically: if this process dies at any point, either the old or the new state
   * is on disk.
   *
   * @param lease the new state
   * @throws SeatLostException if this process has given the seat up
   * @throws VgpuException if the file cannot be written, for example on a full disk
   */
  public void write(LeaseRecord lease) {
    checkOpen();
    Path own = of(lease.id());
    Path temporary = own.resolve(FILE + ".new");
    boolean isNew = !Files.isDirectory(own, LinkOption.NOFOLLOW_LINKS);
    try {
      if (isNew) {
        Files.createDirectory(
            own,
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        if (lease.member().isPresent()) {
          openTo(own, lease.member().get());
        }
      }
      Properties properties = new Properties();
      properties.putAll(lease.values());
      removePlanted(temporary);
      // Not through a channel: interrupting the calling thread would close it.
      try (OutputStream out = new FileOutputStream(temporary.toFile())) {
        properties.store(out, null);
      }
      if (lease.member().isPresent()) {
        Files.setPosixFilePermissions(temporary, OWNER_READS);
      }
      Files.move(temporary, own.resolve(FILE), StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      if (isNew) {
        remove(lease.id());
      }
      throw new VgpuException(
          "the lease cannot be written: path=" + own + ": " + e.getMessage(), e);
    }
  }

  /**
   * Records that a lease is not suspended any more, whatever its file says. This works on a full
   * disk as well.
   *
   * @param id the virtual GPU's name
   */
  public void goesOn(String id) {
    checkOpen();
    try {
      Path file = of(id).resolve(FILE);
      Files.getFileAttributeView(file, BasicFileAttributeView.class, LinkOption.NOFOLLOW_LINKS)
          .setTimes(GOES_ON, null, null);
    } catch (IOException e) {
      log.warn("the next holder of the seat may suspend a lease again: {}", e.toString());
    }
  }

  /** Lets a member enter the directory of its lease. */
  private static void openTo(Path own, Member member) throws IOException {
    // A link, since its owner cannot write anything into it.
    Path marker = Files.createSymbolicLink(own.resolve(FileAccess.MEMBER), Path.of("nothing"));
    member.own(marker);
    FileAccess.of(own).applyToDirectory(own);
  }

  /**
   * Removes a lease and all files in its directory.
   *
   * @param id the virtual GPU's name
   */
  public void remove(String id) {
    if (closed) {
      return; // left to the next holder of the seat
    }
    Path own = of(id);
    try {
      Files.deleteIfExists(own.resolve(FILE)); // first: without this file, it is not a lease
      try (DirectoryStream<Path> files = Files.newDirectoryStream(own)) {
        for (Path file : files) {
          Files.delete(file);
        }
      }
      Files.delete(own);
    } catch (NoSuchFileException e) {
      log.debug("removed already: {}", own);
    } catch (IOException e) {
      log.warn("what is left of a lease could not be removed: {}", e.toString());
    }
  }

  /**
   * {@return all leases on disk}
   *
   * @throws VgpuException if they cannot be read, for example without a free descriptor
   */
  public List<LeaseRecord> readAll() {
    List<LeaseRecord> leases = new ArrayList<>();
    try (DirectoryStream<Path> directories = Files.newDirectoryStream(directory)) {
      for (Path own : directories) {
        if (Files.isDirectory(own, LinkOption.NOFOLLOW_LINKS)
            && LeaseRecord.isId(own.getFileName().toString())) {
          if (!Files.notExists(own.resolve(FILE), LinkOption.NOFOLLOW_LINKS)) {
            read(own, leases);
          } else if (Files.notExists(own.resolve(FILE + BAD))) {
            remove(own.getFileName().toString()); // the holder died while creating or removing it
          }
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      throw new VgpuException(
          "the leases on disk cannot be read: path=" + directory + ": " + e.getMessage(), e);
    }
    return leases;
  }

  private void read(Path own, List<LeaseRecord> leases) throws IOException {
    Path file = own.resolve(FILE);
    try {
      LeaseRecord lease = LeaseRecord.of(load(file));
      if (!own.endsWith(lease.id())) {
        throw new MalformedMessageException("it says that it is the lease " + lease.id());
      }
      leases.add(lease);
    } catch (IllegalArgumentException | MalformedMessageException e) {
      log.warn("malformed lease on disk, set aside: {}: {}", file, e.getMessage());
      try {
        Files.move(file, own.resolve(FILE + BAD), StandardCopyOption.REPLACE_EXISTING);
      } catch (IOException again) {
        log.warn("it could not be set aside: {}", again.toString());
      }
    }
  }

  private static Map<String, String> load(Path file) throws IOException, MalformedMessageException {
    if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
        || Files.size(file) > MOST_FILE_BYTES) {
      throw new MalformedMessageException("not a file of at most " + MOST_FILE_BYTES + " bytes");
    }
    Properties properties = new Properties();
    try (java.io.InputStream in = Files.newInputStream(file)) {
      properties.load(in);
    }
    Map<String, String> values = new HashMap<>();
    properties
        .stringPropertyNames()
        .forEach(name -> values.put(name, properties.getProperty(name)));
    if (Files.getLastModifiedTime(file).equals(GOES_ON)) {
      values.remove("suspension");
    }
    return values;
  }

  /** Closes the counter. Afterwards nothing is written or removed. */
  @Override
  public void close() {
    closed = true;
    try {
      counter.close();
    } catch (IOException e) {
      log.debug("the counter of leases could not be closed", e);
    }
  }
}
