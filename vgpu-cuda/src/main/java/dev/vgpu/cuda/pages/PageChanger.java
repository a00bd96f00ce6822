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
 * Changes words of pages that tenants write, by compare-and-swap, in a process of its own. A tenant
 * may cut such a file short at any moment. An access to the mapping is a fault then: in compiled
 * code the JVM throws an error for it, later and anywhere; in the interpreter it ends the JVM.
 *
 * <p>Safe for use by several threads. A change waits for the process, some tens of microseconds;
 * the first one of all waits for its start, unless {@link #prepare} has begun that.
 */
public final class PageChanger implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(PageChanger.class);

  private static final int REQUEST_BYTES = 32;

  private final Supplier<Path> program;
  private @Nullable Process process;
  private boolean prepared;
  private boolean closed;

  /**
   * Makes it, without starting anything.
   *
   * @param program finds the program
   */
  public PageChanger(Supplier<Path> program) {
    this.program = program;
  }

  /** Starts the process beside the caller, if nobody has. */
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

  /** {@return whether the process runs; it is started if it does not} */
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
      log.warn("pages that programs cut short may end this process: {}", e.getMessage());
      closed = true; // it would not start the next time either
      return false;
    }
  }

  /** What became of a change. */
  enum Answer {
    CHANGED,
    OTHER_VALUE,
    LOST
  }

  /**
   * Changes a word of a file, if it has the expected value.
   *
   * @param file the file
   * @param size how long the file has to be
   * @param offset where the word is; a multiple of eight
   * @throws IOException if the process has ended; whether the word was changed is not known then
   */
  synchronized Answer compareAndSet(Path file, int size, int offset, long expected, long value)
      throws IOException {
    Process running = process;
    if (running == null) {
      throw new IOException("the process that changes pages does not run");
    }
    byte[] path = file.toString().getBytes(StandardCharsets.UTF_8);
    ByteBuffer request =
        ByteBuffer.allocate(REQUEST_BYTES + path.length).order(ByteOrder.LITTLE_ENDIAN);
    request.putLong(offset).putLong(expected).putLong(value).putInt(size).putInt(path.length);
    request.put(path);
    try {
      return ask(running, request.array());
    } catch (IOException e) {
      process = null; // it may seem to be alive still
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
