package dev.vgpu.bench.demo;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.demo.child.Children;
import dev.vgpu.bench.demo.figure.Phase;
import dev.vgpu.bench.demo.figure.PhaseSnapshot;
import dev.vgpu.cli.console.UserException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The sample inference server as a process, and the demo's requests to it. */
final class ServerProcess {
  private static final String READY = "listening on ";
  private static final long START_TIMEOUT_SECONDS = 60;
  private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(60);
  private static final int OK = 200;
  private static final int SHOWN_LOG_LINES = 12;
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Process process;
  private final Path log;
  private final URI address;
  private final HttpClient client =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  private ServerProcess(Process process, Path log, URI address) {
    this.process = process;
    this.log = log;
    this.address = address;
  }

  /**
   * Starts the server and waits until it listens.
   *
   * @param children terminates the process
   * @param command its command line
   * @param log the file for its standard error
   */
  static ServerProcess start(Children children, List<String> command, Path log)
      throws UserException, IOException, InterruptedException {
    Process process = children.start(new ProcessBuilder(command).redirectError(log.toFile()));
    CompletableFuture<URI> address = new CompletableFuture<>();
    Thread reader = new Thread(() -> readOutput(process, address), "vgpu-server-output");
    reader.setDaemon(true);
    reader.start();
    try {
      return new ServerProcess(process, log, address.get(START_TIMEOUT_SECONDS, TimeUnit.SECONDS));
    } catch (ExecutionException e) {
      throw new UserException("the sample server did not start" + lastWords(process, log), e);
    } catch (TimeoutException e) {
      throw new UserException(
          "the sample server was not ready within "
              + START_TIMEOUT_SECONDS
              + " s"
              + lastWords(process, log),
          e);
    }
  }

  /** {@return the server's address} */
  URI address() {
    return address;
  }

  /** Ends the previous phase and begins another. */
  void begin(Phase phase) throws UserException, IOException, InterruptedException {
    post("/demo/phase", PhaseRequest.of(phase));
  }

  /** {@return the events since the phase began} */
  PhaseSnapshot snapshot() throws UserException, IOException, InterruptedException {
    return PhaseSnapshot.of(send(request("/demo/phase").GET().build()));
  }

  /**
   * Runs the model directly, several times.
   *
   * @param texts what to embed
   * @param runs how many times
   * @return the median time of a run, in nanoseconds
   */
  long calibrate(List<String> texts, int runs)
      throws UserException, IOException, InterruptedException {
    ObjectNode body = texts(texts).put("runs", runs);
    long medianNs = post("/demo/calibrate", body).path("medianNs").asLong();
    if (medianNs <= 0) {
      throw new IOException("the server sent no medianNs");
    }
    return medianNs;
  }

  /** Embeds texts as any client does, and checks that the answer has a vector for each. */
  void embed(List<String> texts) throws UserException, IOException, InterruptedException {
    JsonNode vectors = post("/embed", texts(texts)).path("vectors");
    if (vectors.size() != texts.size() || vectors.path(0).isEmpty()) {
      throw new IOException(
          "the server sent " + vectors.size() + " vectors for " + texts.size() + " texts");
    }
  }

  private static ObjectNode texts(List<String> texts) {
    ObjectNode body = JSON.createObjectNode();
    texts.forEach(body.putArray("texts")::add);
    return body;
  }

  private JsonNode post(String path, ObjectNode body)
      throws UserException, IOException, InterruptedException {
    return send(
        request(path)
            .header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString(body.toString(), UTF_8))
            .build());
  }

  private HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(address.resolve(path)).timeout(REQUEST_TIMEOUT);
  }

  private JsonNode send(HttpRequest request)
      throws UserException, IOException, InterruptedException {
    HttpResponse<String> response;
    try {
      response = client.send(request, BodyHandlers.ofString(UTF_8));
    } catch (IOException e) {
      throw new UserException(
          "the sample server did not answer " + request.uri().getPath() + lastWords(process, log),
          e);
    }
    if (response.statusCode() != OK) {
      throw new UserException(
          "the sample server answered "
              + request.uri().getPath()
              + " with status "
              + response.statusCode()
              + ": "
              + response.body());
    }
    return JSON.readTree(response.body());
  }

  private static void readOutput(Process process, CompletableFuture<URI> address) {
    try (BufferedReader reader =
        new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8))) {
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        if (line.startsWith(READY)) {
          address.complete(URI.create(line.substring(READY.length()).strip()));
        }
      }
    } catch (IOException | IllegalArgumentException e) {
      address.completeExceptionally(e);
    }
    address.completeExceptionally(new IOException("standard output closed"));
  }

  private static String lastWords(Process process, Path log) {
    String end = process.isAlive() ? "" : "; it ended with exit code " + process.exitValue();
    try {
      List<String> lines = Files.readAllLines(log, UTF_8);
      List<String> last = lines.subList(Math.max(0, lines.size() - SHOWN_LOG_LINES), lines.size());
      return end + (last.isEmpty() ? "" : "; its log ends:\n  " + String.join("\n  ", last));
    } catch (IOException e) {
      return end;
    }
  }
}
