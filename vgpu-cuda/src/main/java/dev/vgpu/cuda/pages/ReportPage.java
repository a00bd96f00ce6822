package dev.vgpu.cuda.pages;

import dev.vgpu.VgpuException;
import java.io.EOFException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The page that tenants write. A tenant can truncate the file at any moment. An access to its
 * mapping then faults, and the JVM throws an error late and elsewhere, or crashes. So the page is
 * read and written with file calls, which see the same bytes as the processes' mappings; fences
 * give them the order of a {@link SharedPage}. No file call can do {@link #compareAndSet}: a {@link
 * PageChanger} does it. Confined to one thread at a time.
 *
 * <p>Does not use a {@link java.nio.channels.FileChannel}: an interrupt of the reading thread would
 * close it.
 */
public final class ReportPage extends SharedPage implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(ReportPage.class);
  private static final int ATTEMPTS_ELSEWHERE = 16;

  private final Path path;
  private final RandomAccessFile file;
  private final @Nullable PageChanger changer;
  private final int size;
  private final byte[] word = new byte[Long.BYTES];
  private final ByteBuffer wordBuffer = ByteBuffer.wrap(word).order(ByteOrder.LITTLE_ENDIAN);

  /**
   * Takes a file that is as long as the mapping.
   *
   * @param changer null: only the seat's own user can truncate the file; words are changed here
   */
  ReportPage(ByteBuffer mapping, Path path, RandomAccessFile file, @Nullable PageChanger changer) {
    super(mapping);
    this.path = path;
    this.file = file;
    this.changer = changer;
    this.size = mapping.capacity();
  }

  /** The file was truncated or cannot be accessed; the page is no longer usable. */
  public static final class LostException extends VgpuException {
    private static final long serialVersionUID = 1L;

    LostException(IOException cause) {
      super(
          "a report page is lost: "
              + (cause instanceof EOFException ? "its file was truncated" : cause.getMessage()),
          cause);
    }
  }

  /** Reads {@code length} bytes. */
  public void read(int offset, byte[] into, int length) {
    try {
      file.seek(offset);
      file.readFully(into, 0, length);
      // A file call orders nothing. What is read next must not be older than this.
      VarHandle.acquireFence();
    } catch (IOException e) {
      throw new LostException(e);
    }
  }

  private void write(int offset, int length) {
    try {
      file.seek(offset);
      // Whoever sees this also sees what was written before.
      VarHandle.releaseFence();
      file.write(word, 0, length);
    } catch (IOException e) {
      throw new LostException(e);
    }
  }

  @Override
  public int intAt(int offset) {
    read(offset, word, Integer.BYTES);
    return wordBuffer.getInt(0);
  }

  @Override
  public long longAt(int offset) {
    read(offset, word, Long.BYTES);
    return wordBuffer.getLong(0);
  }

  @Override
  public void setInt(int offset, int value) {
    wordBuffer.putInt(0, value);
    write(offset, Integer.BYTES);
  }

  @Override
  public void setLong(int offset, long value) {
    wordBuffer.putLong(0, value);
    write(offset, Long.BYTES);
  }

  @Override
  public void clear(int offset, int length) {
    try {
      file.seek(offset);
      VarHandle.releaseFence();
      file.write(new byte[length]);
    } catch (IOException e) {
      throw new LostException(e);
    }
  }

  @Override
  public boolean compareAndSet(int offset, long expected, long value) {
    PageChanger elsewhere = changer;
    if (elsewhere == null || !elsewhere.works()) {
      return compareAndSetHere(offset, expected, value);
    }
    try {
      return answer(elsewhere.compareAndSet(path, size, offset, expected, value));
    } catch (IOException e) {
      log.warn("{}", e.getMessage());
      // Each value that is written this way is unique: if it is there, it was written.
      return longAt(offset) == value || compareAndSetAgain(elsewhere, offset, expected, value);
    }
  }

  /** Each attempt is a question to another process. */
  @Override
  int mostAttempts() {
    return changer == null ? super.mostAttempts() : ATTEMPTS_ELSEWHERE;
  }

  @Override
  boolean changeLedger(int word, long delta, long seq, int marks) {
    PageChanger elsewhere = changer;
    try {
      return elsewhere != null
          && elsewhere.works()
          && answer(elsewhere.changeLedger(path, size, word, delta, seq, marks));
    } catch (IOException e) {
      log.warn("{}", e.getMessage());
      return false;
    }
  }

  private boolean compareAndSetAgain(PageChanger by, int offset, long expected, long value) {
    try {
      return by.works() && answer(by.compareAndSet(path, size, offset, expected, value));
    } catch (IOException e) {
      throw new LostException(e);
    }
  }

  private static boolean answer(PageChanger.Answer answer) {
    if (answer == PageChanger.Answer.LOST) {
      throw new LostException(new EOFException());
    }
    return answer == PageChanger.Answer.CHANGED;
  }

  /** A truncation between the check of the length and the access still faults. */
  private boolean compareAndSetHere(int offset, long expected, long value) {
    try {
      if (file.length() < size) {
        throw new EOFException();
      }
    } catch (IOException e) {
      throw new LostException(e);
    }
    return super.compareAndSet(offset, expected, value);
  }

  /** Closes the file; no further access is possible. */
  @Override
  public void close() {
    try {
      file.close();
    } catch (IOException e) {
      log.debug("a report page would not close", e);
    }
  }
}
