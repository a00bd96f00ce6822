package dev.vgpu.simulation.trace;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.util.List;

/**
 * The requests that a service received, in the order of their arrival. Immutable.
 *
 * @param name the name for people
 * @param start when the first request arrived
 * @param requests at least one
 */
public record Trace(String name, LocalDateTime start, List<TraceRequest> requests) {
  /** Copies the list. */
  public Trace {
    requireNonNull(name, "name");
    requireNonNull(start, "start");
    requests = List.copyOf(requests);
  }

  /** The bundled traces: a few minutes each of the Azure Public Dataset, CC-BY 4.0. */
  public enum Builtin {
    /** A conversation service. */
    CONV("azure_llm_2023_conv_1840-1848.csv", "Azure LLM inference trace 2023, conversation"),
    /** A coding service, with bursts. */
    CODE("azure_llm_2023_code_1829-1837.csv", "Azure LLM inference trace 2023, code");

    private final String resource;
    private final String title;

    Builtin(String resource, String title) {
      this.resource = resource;
      this.title = title;
    }

    /** {@return the trace} */
    public Trace load() {
      try (InputStream stream =
              requireNonNull(Trace.class.getResourceAsStream(resource), resource);
          BufferedReader reader = new BufferedReader(new InputStreamReader(stream, UTF_8))) {
        return TraceParser.parse(title, reader);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      } catch (TraceFormatException e) {
        throw new IllegalStateException("a trace in this jar is corrupt: " + resource, e);
      }
    }
  }

  /**
   * Reads a trace in the format of the Azure LLM inference traces.
   *
   * @param file the file, in UTF-8
   * @return the trace
   * @throws TraceFormatException if it cannot be read, or if a line is corrupt; the message names
   *     the file, the line and the reason
   */
  public static Trace fromFile(Path file) throws TraceFormatException {
    try (BufferedReader reader = Files.newBufferedReader(file, UTF_8)) {
      return TraceParser.parse(file.getFileName().toString(), reader);
    } catch (TraceFormatException e) {
      throw new TraceFormatException("trace " + file + ", " + e.getMessage(), e);
    } catch (NoSuchFileException e) {
      throw new TraceFormatException("trace " + file + " does not exist", e);
    } catch (IOException e) {
      throw new TraceFormatException("trace " + file + " cannot be read: " + e, e);
    }
  }
}
