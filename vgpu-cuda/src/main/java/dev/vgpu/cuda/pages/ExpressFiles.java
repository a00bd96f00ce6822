package dev.vgpu.cuda.pages;

import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_BITS;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_MAGIC;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_SIZE;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_MAGIC;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_SIZE;
import static dev.vgpu.cuda.layout.ShmLayout.LAYOUT_MAJOR;

import dev.vgpu.cuda.layout.ShmLayout.Grant;
import dev.vgpu.cuda.layout.ShmLayout.Header;
import dev.vgpu.files.FileAccess;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** The files of the express lanes: {@code express/NAME} in the run directory, one per GPU. */
public final class ExpressFiles {
  private static final String DIRECTORY = "express";

  /** Leaves room for the terminating zero. */
  private static final int MOST_NAME = Grant.EXPRESS_PAGE_LENGTH - 1;

  private ExpressFiles() {}

  /** {@return a valid file name for any GPU id} */
  public static String name(String gpu) {
    String plain = gpu.replaceAll("[^A-Za-z0-9_-]", "_");
    if (plain.equals(gpu) && plain.length() <= MOST_NAME) {
      return plain;
    }
    String hash = Integer.toHexString(gpu.hashCode());
    return plain.substring(0, Math.min(plain.length(), MOST_NAME - hash.length() - 1)) + "-" + hash;
  }

  /** Opens a lane's file. A file that is incomplete, or has another layout, is replaced. */
  public static ReportPage open(Path runDirectory, String name) throws IOException {
    FileAccess access = FileAccess.of(runDirectory);
    Path directory = runDirectory.resolve(DIRECTORY);
    if (!Files.isDirectory(directory)) {
      Files.createDirectories(directory);
      access.applyToDirectory(directory);
    }
    Path file = directory.resolve(name);
    if (!isWhole(file)) {
      Files.deleteIfExists(file);
      LeasePages.writeZeros(file, EXPRESS_SIZE);
      access.apply(file, false);
      ReportPage page = LeasePages.mapShared(file, EXPRESS_SIZE, null);
      LeasePages.begin(page, EXPRESS_SIZE, EXPRESS_BITS, EXPRESS_MAGIC);
      return page;
    }
    return LeasePages.mapShared(file, EXPRESS_SIZE, null);
  }

  private static boolean isWhole(Path file) throws IOException {
    if (!Files.isRegularFile(file) || Files.size(file) != EXPRESS_SIZE) {
      return false;
    }
    ByteBuffer page = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
    return page.capacity() == EXPRESS_SIZE
        && page.getLong(Header.MAGIC) == EXPRESS_MAGIC
        && page.getInt(Header.LAYOUT_MAJOR) == LAYOUT_MAJOR
        && page.getInt(Header.SLOT_COUNT) == EXPRESS_BITS;
  }

  /**
   * {@return the bits that an earlier seat gave to processes of any lease} They must stay reserved
   * until all those leases are taken over, one after the other.
   */
  public static long bitsGiven(Path runDirectory, String name) throws IOException {
    Path leases = runDirectory.resolve("leases");
    long bits = 0;
    if (!Files.isDirectory(leases)) {
      return bits;
    }
    try (DirectoryStream<Path> directories = Files.newDirectoryStream(leases)) {
      for (Path directory : directories) {
        Path grant = directory.resolve(LeasePages.GRANT);
        if (Files.isRegularFile(grant) && Files.size(grant) == GRANT_SIZE) {
          bits |= bitsGiven(ByteBuffer.wrap(Files.readAllBytes(grant)), name);
        }
      }
    }
    return bits;
  }

  private static long bitsGiven(ByteBuffer grant, String name) {
    grant.order(ByteOrder.LITTLE_ENDIAN);
    if (grant.capacity() != GRANT_SIZE
        || grant.getLong(Header.MAGIC) != GRANT_MAGIC
        || grant.getInt(Header.LAYOUT_MAJOR) != LAYOUT_MAJOR
        || !pageName(grant).equals(name)) {
      return 0;
    }
    long bits = 0;
    for (int bit = 0; bit < EXPRESS_BITS; bit++) {
      if (grant.get(GRANT_OFFSET + Grant.EXPRESS_SLOTS + bit) != 0) {
        bits |= 1L << bit;
      }
    }
    return bits;
  }

  /** {@return the name of the GPU's file; empty if it has no express lane} */
  public static String pageName(ByteBuffer grant) {
    byte[] bytes = new byte[Grant.EXPRESS_PAGE_LENGTH];
    grant.get(GRANT_OFFSET + Grant.EXPRESS_PAGE, bytes);
    int end = 0;
    while (end < bytes.length && bytes[end] != 0) {
      end++;
    }
    return new String(bytes, 0, end, StandardCharsets.US_ASCII);
  }
}
