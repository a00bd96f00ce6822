package dev.vgpu.core.metering;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The records on disk, in numbered files; the last file grows. A full file is thinned to one record
 * per minute. If the files together are too large, the oldest are removed. A file begins with the
 * last record of every living virtual GPU, so continuing needs no earlier file.
 *
 * <p>What is read is not trusted: anything that is not a record is logged and skipped. Only the
 * seat's holder writes. A holder that hangs while it gives the seat up may still write once beside
 * the next one, so records are only appended. There are two locks. Writing takes the write lock,
 * which is held briefly. Reading, and changing the set of files, takes the files lock, which is
 * taken first. Safe for use by several threads.
 */
final class UsageJournal implements AutoCloseable {
  /** How large files may become, in bytes. */
  record Limits(long fileBytes, long allBytes) {
    static final Limits USUAL = new Limits(4 << 20, 64 << 20);
  }

  private static final Logger log = LoggerFactory.getLogger(UsageJournal.class);
  private static final String PREFIX = "usage-";
  private static final String SUFFIX = ".log";
  private static final String TEMPORARY = ".new";
  private static final int NUMBER_DIGITS = 9;
  private static final int MOST_TIMES_FULL = 16;
  private static final int MOST_NAMED = 1_000;

  private final Path directory;
  private final Limits limits;

  /** Guards the set of files; taken before the other lock. */
  private final ReentrantLock filesLock = new ReentrantLock();

  private final ReentrantLock writeLock = new ReentrantLock();

  // The fields below are guarded by the write lock.
  private @Nullable FileOutputStream file;
  private long number;
  private long wholeBytes;

  /** Whether a failed attempt, as on a full disk, may have left part of a record at the end. */
  private boolean isTorn;

  private final Map<UsageEntry.Key, UsageEntry> living = new LinkedHashMap<>();

  private volatile boolean abandoned;

  /** Damage that was already logged, so that it is not logged on every read. */
  private final Set<String> named = ConcurrentHashMap.newKeySet();

  UsageJournal(Path directory, Limits limits) {
    this.directory = directory;
    this.limits = limits;
  }

  Path directory() {
    return directory;
  }

  /** Leaves the files to the next holder of the seat. Does not wait. */
  void abandon() {
    abandoned = true;
  }

  private void checkHeld() throws IOException {
    if (abandoned) {
      throw new IOException("another process writes here now");
    }
  }

  /** Opens the last file, or creates the first. Cuts off an incomplete record at the end. */
  private FileOutputStream open() throws IOException {
    FileOutputStream opened = file;
    if (opened != null) {
      return opened;
    }
    if (!Files.isDirectory(directory)) {
      Files.createDirectory(
          directory,
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    }
    NavigableMap<Long, Path> files = files();
    number = files.isEmpty() ? 1 : files.lastKey();
    if (!files.isEmpty() && isTooLarge(Files.size(path(number)))) {
      number++;
    }
    try (RandomAccessFile last = new RandomAccessFile(path(number).toFile(), "rw")) {
      long bytes = last.length();
      living.clear();
      wholeBytes =
          EntryLines.read(
              new FileInputStream(last.getFD()), bytes, this::note, damage(path(number)));
      if (bytes > wholeBytes) {
        log.warn(
            "the last usage record is incomplete and was dropped: path={} bytes={}",
            path(number),
            bytes - wholeBytes);
        last.setLength(wholeBytes);
      }
    }
    isTorn = false;
    opened = appending(path(number));
    file = opened;
    return opened;
  }

  /** Not a channel: interrupting the calling thread would close it. */
  private static FileOutputStream appending(Path path) throws IOException {
    return new FileOutputStream(path.toFile(), true);
  }

  private void note(UsageEntry entry) {
    if (entry.closed()) {
      living.remove(entry.key());
    } else {
      living.put(entry.key(), entry);
    }
  }

  /**
   * Writes records: all of them, or none that a later writer would keep.
   *
   * @throws IOException if they cannot be written
   */
  void append(Collection<UsageEntry> entries) throws IOException {
    writeLock.lock();
    try {
      checkHeld();
      write(open(), entries);
      entries.forEach(this::note);
    } finally {
      writeLock.unlock();
    }
  }

  private void write(FileOutputStream to, Collection<UsageEntry> entries) throws IOException {
    StringBuilder lines = new StringBuilder();
    entries.forEach(entry -> lines.append(EntryLines.line(entry)));
    byte[] bytes = lines.toString().getBytes(ISO_8859_1);
    if (isTorn) {
      try (RandomAccessFile last = new RandomAccessFile(path(number).toFile(), "rw")) {
        last.setLength(wholeBytes);
      }
    }
    isTorn = true;
    to.write(bytes);
    isTorn = false;
    wholeBytes += bytes.length;
  }

  /** The last records of virtual GPUs that were not closed, as far as they can be found. */
  Map<String, List<UsageEntry>> lastOf(Set<String> ids) throws IOException {
    Map<String, List<UsageEntry>> found = new HashMap<>();
    Set<String> missing = new HashSet<>(ids);
    filesLock.lock();
    try {
      for (Path path : files().descendingMap().values()) {
        if (missing.isEmpty()) {
          break;
        }
        Map<UsageEntry.Key, UsageEntry> lasts = new LinkedHashMap<>();
        read(path, entry -> lasts.put(entry.key(), entry));
        lasts.values().stream()
            .filter(entry -> missing.contains(entry.id()) && !entry.closed())
            .forEach(
                entry -> found.computeIfAbsent(entry.id(), id -> new ArrayList<>()).add(entry));
        missing.removeAll(found.keySet());
      }
      return found;
    } finally {
      filesLock.unlock();
    }
  }

  /** Reads all records, oldest first. */
  void readAll(Consumer<UsageEntry> to) throws IOException {
    filesLock.lock();
    try {
      for (Path path : files().values()) {
        read(path, to);
      }
    } finally {
      filesLock.unlock();
    }
  }

  private void read(Path path, Consumer<UsageEntry> to) throws IOException {
    if (isTooLarge(Files.size(path))) {
      damage(path).found(0, "the whole file: " + Files.size(path) + " bytes");
      return;
    }
    // A stream, not a channel: interrupting the calling thread would close a channel.
    try (FileInputStream in = new FileInputStream(path.toFile())) {
      long ignored = EntryLines.read(in, Files.size(path), to, damage(path));
    }
  }

  /** Such a file is not ours: ours are never much larger than the limit. */
  private boolean isTooLarge(long bytes) {
    return bytes > MOST_TIMES_FULL * limits.fileBytes();
  }

  private EntryLines.Damage damage(Path path) {
    return (line, text) -> {
      if (named.size() < MOST_NAMED && named.add(path + ":" + line)) {
        log.warn("skipped a damaged usage record: path={} line={}: {}", path, line, text);
      }
    };
  }

  /** If the last file is full, starts a new one, and tidies up the others. May take a while. */
  void tidy() throws IOException {
    filesLock.lock();
    try {
      checkHeld();
      Path full = beginNext();
      if (full != null) {
        thin(full);
        removeOldest();
      }
    } finally {
      filesLock.unlock();
    }
  }

  private @Nullable Path beginNext() throws IOException {
    writeLock.lock();
    try {
      FileOutputStream full = file;
      if (full != null && !Files.exists(path(number))) {
        full.close(); // the file was removed: the next record goes to a new one
        file = null;
        return null;
      }
      if (full == null || wholeBytes < limits.fileBytes()) {
        return null;
      }
      Path following = path(number + 1);
      if (Files.exists(following, LinkOption.NOFOLLOW_LINKS)) { // by an earlier holder of the seat
        full.close();
        file = null;
        return null;
      }
      Files.createFile(following);
      FileOutputStream next = null;
      boolean begun = false;
      boolean wasTorn = isTorn;
      long before = wholeBytes;
      try {
        isTorn = false;
        next = appending(following);
        wholeBytes = 0;
        write(next, List.copyOf(living.values()));
        begun = true;
      } finally {
        if (!begun) {
          wholeBytes = before;
          isTorn = wasTorn;
          if (next != null) {
            next.close();
          }
          Files.deleteIfExists(following);
        }
      }
      file = next;
      number++;
      full.close();
      return path(number - 1);
    } finally {
      writeLock.unlock();
    }
  }

  private void thin(Path full) throws IOException {
    List<UsageEntry> entries = new ArrayList<>();
    read(full, entries::add);
    StringBuilder lines = new StringBuilder();
    Thinning.of(entries).forEach(entry -> lines.append(EntryLines.line(entry)));
    File temporary = new File(full + TEMPORARY);
    try {
      try (FileOutputStream out = new FileOutputStream(temporary)) {
        out.write(lines.toString().getBytes(ISO_8859_1));
      }
      checkHeld();
      Files.move(temporary.toPath(), full, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(temporary.toPath());
    }
  }

  private void removeOldest() throws IOException {
    NavigableMap<Long, Path> files = files();
    long bytes = 0;
    for (Path path : files.values()) {
      bytes += Files.size(path);
    }
    while (bytes > limits.allBytes() && files.size() > 1) {
      Path oldest = files.pollFirstEntry().getValue();
      bytes -= Files.size(oldest);
      Files.delete(oldest);
    }
  }

  private Path path(long of) {
    return directory.resolve(
        PREFIX + String.format(java.util.Locale.ROOT, "%0" + NUMBER_DIGITS + "d", of) + SUFFIX);
  }

  private NavigableMap<Long, Path> files() throws IOException {
    NavigableMap<Long, Path> files = new TreeMap<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(directory, PREFIX + "*" + SUFFIX)) {
      for (Path path : all) {
        String name = path.getFileName().toString();
        String digits = name.substring(PREFIX.length(), name.length() - SUFFIX.length());
        if (digits.matches("\\d{1,18}") && Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS)) {
          files.put(Long.parseLong(digits), path);
        }
      }
    } catch (NoSuchFileException e) {
      return files; // nothing was written yet
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
    return files;
  }

  @Override
  public void close() {
    writeLock.lock();
    try {
      if (file != null) {
        file.close();
        file = null;
      }
    } catch (IOException e) {
      log.debug("the journal of what was used could not be closed", e);
    } finally {
      writeLock.unlock();
    }
  }
}
