package dev.vgpu.cuda.pages;

import dev.vgpu.VgpuException;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Changes words of tenant-writable pages by compare-and-swap, in a separate process. A tenant may
 * truncate such a file at any moment, and an access to its mapping then faults. In compiled code,
 * the JVM throws an asynchronous error; in the interpreter, it crashes.
 *
 * <p>Safe for use by several threads. A change waits for that process, some tens of microseconds.
 * The first change also waits until the process has started, unless {@link #prepare} was called
 * before.
 */
public final class PageChanger implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(PageChanger.class);

  private static final int REQUEST_BYTES = 40;

  private final Supplier<Path> program;
  private @Nullable Process process;
  private boolean prepared;
  private boolean closed;

  /**
   * Creates it without starting the process.
   *
   * @param program finds the program
   */
  public PageChanger(Supplier<Path> program) {
    this.program = program;
  }

  /** Starts the process on another thread, if that has not been done yet. */
  public synchronized void prepare() {
    if (!prepared) {
      prepared = true;
      Thread starter = new Thread(this::works, "vgpu-page-changer");
      starter.setDaemon(true);
      try {
        starter.start();
      } catch (OutOfMemoryError e) {
        log.debug("no thread can be started: the process is started when it is needed", e);
      }
    }
  }

  /** {@return whether the process runs} Starts it if it does not. */
  synchronized boolean works() {
    Process running = process;
    if (running != null && running.isAlive()) {
      return true;
    }
    if (closed) {
      return false;
    }
    try {
      ProcessBuilder builder = new ProcessBuilder(program.get().toString(), "--pages");
      builder.environment().clear();
      process = builder.redirectError(ProcessBuilder.Redirect.DISCARD).start();
      return true;
    } catch (IOException | VgpuException e) {
      log.warn(
          "cannot start the page helper; a truncated page may end this process: {}",
          e.getMessage());
      closed = true; // another attempt would fail too
      return false;
    }
  }

  /** The result of a change. */
  enum Answer {
    CHANGED,
    OTHER_VALUE,
    LOST
  }

  /**
   * Changes a word of a file if it has the expected value.
   *
   * @param file the file
   * @param size the length that the file must have
   * @param offset the word's offset; a multiple of eight
   * @throws IOException if the process has ended; whether the word was changed is then unknown
   */
  Answer compareAndSet(Path file, int size, int offset, long expected, long value)
      throws IOException {
    return change(file, size, offset, expected, value, 0);
  }

  /**
   * Makes a change of a memory ledger, which it tries often, as the programs may change it too.
   *
   * @param file the file
   * @param size the length that the file must have
   * @param offset the offset of the ledger's word
   * @param delta by how many units the word changes
   * @param seq the change's sequence
   * @param marks where a slot marks the GPU's changes as done
   * @throws IOException if the process has ended; whether the word was changed is then unknown
   */
  Answer changeLedger(Path file, int size, int offset, long delta, long seq, int marks)
      throws IOException {
    return change(file, size, offset, delta, seq, marks);
  }

  private synchronized Answer change(
      Path file, int size, int offset, long expected, long value, int marks) throws IOException {
    Process running = process;
    if (running == null) {
      throw new IOException("the process that changes pages does not run");
    }
    byte[] path = file.toString().getBytes(StandardCharsets.UTF_8);
    ByteBuffer request =
        ByteBuffer.allocate(REQUEST_BYTES + path.length).order(ByteOrder.LITTLE_ENDIAN);
    request.putLong(offset).putLong(expected).putLong(value).putInt(size).putInt(path.length);
    request.putLong(marks);
    request.put(path);
    try {
      return ask(running, request.array());
    } catch (IOException e) {
      process = null; // isAlive may still report true
      running.destroyForcibly();
      throw e;
    }
  }

  private static Answer ask(Process process, byte[] request) throws IOException {
    OutputStream out = process.getOutputStream();
    out.write(request);
    out.flush();
    return switch (process.getInputStream().read()) {
      case 'y' -> Answer.CHANGED;
      case 'n' -> Answer.OTHER_VALUE;
      case '-' -> Answer.LOST;
      default -> throw new EOFException("the process that changes pages has ended");
    };
  }

  @Override
  public synchronized void close() {
    closed = true;
    Process running = process;
    if (running != null) {
      process = null;
      running.destroyForcibly();
    }
  }
}
