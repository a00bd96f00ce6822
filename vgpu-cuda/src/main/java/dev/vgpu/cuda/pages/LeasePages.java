package dev.vgpu.cuda.pages;

import static dev.vgpu.cuda.layout.ShmLayout.GRANT_MAGIC;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_SIZE;
import static dev.vgpu.cuda.layout.ShmLayout.LAYOUT_MAJOR;
import static dev.vgpu.cuda.layout.ShmLayout.LAYOUT_MINOR;
import static dev.vgpu.cuda.layout.ShmLayout.REPORT_MAGIC;
import static dev.vgpu.cuda.layout.ShmLayout.REPORT_SIZE;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_COUNT;

import dev.vgpu.ProtocolMismatchException;
import dev.vgpu.VgpuException;
import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.files.FileAccess;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The two mapped files of a lease: the seat's grants, and the reports of the tenant's processes.
 * Both stay mapped as long as this object lives.
 *
 * @param grant written by the seat alone
 * @param report written by the tenant's processes; check everything that is read from it
 * @param adopted whether an earlier holder of the seat made the files
 * @param member the user whose processes write the report; empty: the seat's user
 */
public record LeasePages(
    SharedPage grant, ReportPage report, boolean adopted, Optional<UserPrincipal> member) {
  /** The file that the seat alone writes. */
  public static final String GRANT = "grant";

  /** The file that the tenant's processes write. */
  public static final String REPORT = "report";

  /**
   * Opens or creates the files of a lease. The caller is the seat: no other process creates them.
   *
   * @param changer changes words of the report; null: they are changed in this process
   * @throws ProtocolMismatchException if the files have another layout
   * @throws VgpuException if the files are invalid, or cannot be created; leaves no new file
   */
  public static LeasePages in(Path directory, @Nullable PageChanger changer) {
    Path grant = directory.resolve(GRANT);
    Path report = directory.resolve(REPORT);
    try {
      FileAccess access = FileAccess.of(directory);
      // The report is created first: without a complete grant, no process has attached yet.
      if (isWhole(grant, GRANT_SIZE)) {
        checkFile(grant, GRANT_SIZE, GRANT_MAGIC);
        checkFile(report, REPORT_SIZE, REPORT_MAGIC);
        return new LeasePages(
            mapGrant(grant), mapShared(report, REPORT_SIZE, changer), true, access.member());
      }
      return create(grant, report, access, changer);
    } catch (IOException e) {
      throw new VgpuException(
          "cannot open the shared pages of a lease: " + e.getMessage() + " directory=" + directory,
          e);
    }
  }

  /** {@return whether creation was completed} Foreign content counts; it is refused later. */
  private static boolean isWhole(Path file, int size) throws IOException {
    if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
      return false; // anything but a regular file is replaced
    }
    if (Files.size(file) < Long.BYTES) {
      return Files.size(file) != 0;
    }
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      ByteBuffer magic = ByteBuffer.allocate(Long.BYTES);
      channel.read(magic, 0);
      return magic.getLong(0) != 0 || channel.size() > size;
    }
  }

  private static LeasePages create(
      Path grant, Path report, FileAccess access, @Nullable PageChanger changer)
      throws IOException {
    try {
      Files.deleteIfExists(grant);
      Files.deleteIfExists(report);
      writeZeros(report, REPORT_SIZE);
      writeZeros(grant, GRANT_SIZE);
      LeasePages pages =
          new LeasePages(
              mapGrant(grant), mapShared(report, REPORT_SIZE, changer), false, access.member());
      begin(pages.report(), REPORT_SIZE, SLOT_COUNT, REPORT_MAGIC);
      access.apply(report, true); // from now on, a tenant may truncate it
      access.apply(grant, false);
      begin(pages.grant(), GRANT_SIZE, SLOT_COUNT, GRANT_MAGIC);
      return pages;
    } catch (IOException | RuntimeException e) {
      deleteQuietly(grant, e);
      deleteQuietly(report, e);
      throw e;
    }
  }

  private static void deleteQuietly(Path file, Exception cause) {
    try {
      Files.deleteIfExists(file);
    } catch (IOException e) {
      cause.addSuppressed(e);
    }
  }

  /** Written, not extended: a full disk then fails here, not at a later store to the mapping. */
  static void writeZeros(Path file, int size) throws IOException {
    try (FileChannel channel =
        FileChannel.open(
            file,
            Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
      ByteBuffer zeros = ByteBuffer.allocate(size);
      while (zeros.hasRemaining()) {
        channel.write(zeros);
      }
    }
  }

  /** Writes the header of a page. The magic comes last, so no other process sees it incomplete. */
  static void begin(SharedPage page, int size, int slotCount, long magic) {
    page.setInt(ShmLayout.Header.LAYOUT_MAJOR, LAYOUT_MAJOR);
    page.setInt(ShmLayout.Header.LAYOUT_MINOR, LAYOUT_MINOR);
    page.setLong(ShmLayout.Header.SIZE, size);
    page.setInt(ShmLayout.Header.SLOT_COUNT, slotCount);
    // release: a reader that sees the magic also sees the fields before it
    page.setLong(ShmLayout.Header.MAGIC, magic);
  }

  private static SharedPage mapGrant(Path file) throws IOException {
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return new SharedPage(channel.map(FileChannel.MapMode.READ_WRITE, 0, GRANT_SIZE));
    }
  }

  /** Maps a page that tenants write. */
  static ReportPage mapShared(Path path, int size, @Nullable PageChanger changer)
      throws IOException {
    RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw");
    try {
      return new ReportPage(
          file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, size), path, file, changer);
    } catch (IOException | RuntimeException e) {
      file.close();
      throw e;
    }
  }

  private static void checkFile(Path file, int size, long magic) throws IOException {
    if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
      throw new VgpuException("a shared page is not there, or is no file: file=" + file);
    }
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      long found = channel.size();
      ByteBuffer header =
          ByteBuffer.allocate(ShmLayout.Header.BYTES).order(ByteOrder.LITTLE_ENDIAN);
      if (found < header.capacity() || channel.read(header, 0) < header.capacity()) {
        throw new VgpuException(
            "a shared page was truncated: file=" + file + " bytes=" + found + " expected=" + size);
      }
      check(file, header, size, magic, found);
    }
  }

  private static void check(Path file, ByteBuffer page, int size, long magic, long found) {
    long foundMagic = page.getLong(ShmLayout.Header.MAGIC);
    if (foundMagic != magic) {
      throw new VgpuException(
          "not a shared page of vgpu: file="
              + file
              + " magic=0x"
              + Long.toHexString(foundMagic)
              + " expected=0x"
              + Long.toHexString(magic));
    }
    int major = page.getInt(ShmLayout.Header.LAYOUT_MAJOR);
    if (major != LAYOUT_MAJOR) {
      throw new ProtocolMismatchException(
          "a shared page has another layout: file="
              + file
              + " layout="
              + Integer.toUnsignedString(major)
              + "."
              + Integer.toUnsignedString(page.getInt(ShmLayout.Header.LAYOUT_MINOR))
              + " mine="
              + LAYOUT_MAJOR
              + "."
              + LAYOUT_MINOR);
    }
    long told = page.getLong(ShmLayout.Header.SIZE);
    int slots = page.getInt(ShmLayout.Header.SLOT_COUNT);
    if (found != size || told != size || slots != SLOT_COUNT) {
      throw new VgpuException(
          "a shared page is damaged: file="
              + file
              + " bytes="
              + found
              + " header says "
              + Long.toUnsignedString(told)
              + " slots="
              + Integer.toUnsignedString(slots)
              + " expected bytes="
              + size
              + " slots="
              + SLOT_COUNT);
    }
  }
}
