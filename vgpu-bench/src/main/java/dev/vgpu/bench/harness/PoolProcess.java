package dev.vgpu.bench.harness;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.HashMap;
import java.util.Map;

/** A JVM that has opened a pool: the seat's holder or one of its clients. */
public final class PoolProcess implements AutoCloseable {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Child child;
  private final JsonNode opened;

  private PoolProcess(Child child, JsonNode opened) {
    this.child = child;
    this.opened = opened;
  }

  static PoolProcess open(Node node, Child child) throws InterruptedException {
    try {
      return new PoolProcess(child, read(child.line()));
    } catch (IllegalStateException e) {
      child.close();
      throw new IllegalStateException("a pool did not open:\n" + node.errors(), e);
    }
  }

  private static JsonNode read(String line) {
    try {
      JsonNode answer = JSON.readTree(line);
      if (answer.has("error")) {
        throw new IllegalStateException(answer.path("error").asText());
      }
      return answer;
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("not JSON: " + line, e);
    }
  }

  private JsonNode ask(String line) throws InterruptedException {
    child.tell(line);
    return read(child.line());
  }

  /** {@return the process} */
  public Child child() {
    return child;
  }

  /** {@return how long opening the pool took, in milliseconds} */
  public double openMs() {
    return opened.path("open_ms").asDouble();
  }

  /** {@return the time from the JVM's start until the pool was open, in milliseconds} */
  public double sinceStartMs() {
    return opened.path("since_start_ms").asDouble();
  }

  /** {@return the name of the pool's first GPU} */
  public String gpu() {
    return opened.path("gpu").asText();
  }

  /**
   * Acquires a virtual GPU.
   *
   * @param name its name
   * @param policy how its share binds
   * @param percent its share; 0 for best effort
   * @param preemptionClass its class
   * @param memory its quota
   * @return the environment variables that put a program under it
   * @throws IllegalStateException with the pool's message, if it is refused
   * @throws InterruptedException if this thread is interrupted
   */
  public Map<String, String> acquire(
      String name,
      SharePolicy policy,
      int percent,
      PreemptionClass preemptionClass,
      MemorySize memory)
      throws InterruptedException {
    return acquire(name, policy, percent, preemptionClass, memory, "fixed");
  }

  /**
   * Acquires a virtual GPU.
   *
   * @param name its name
   * @param policy how its share binds
   * @param percent its share; 0 for best effort
   * @param preemptionClass its class
   * @param memory its quota
   * @param mobility {@code movable} or {@code fixed}, for its memory; optionally a blank and the
   *     GPU
   * @return the environment variables that put a program under it
   * @throws IllegalStateException with the pool's message, if it is refused
   * @throws InterruptedException if this thread is interrupted
   */
  public Map<String, String> acquire(
      String name,
      SharePolicy policy,
      int percent,
      PreemptionClass preemptionClass,
      MemorySize memory,
      String mobility)
      throws InterruptedException {
    JsonNode answer =
        ask(
            String.join(
                " ",
                "acquire",
                name,
                policy.name(),
                Integer.toString(percent),
                preemptionClass.name(),
                Long.toString(memory.bytes()),
                mobility));
    Map<String, String> environment = new HashMap<>();
    answer
        .path("environment")
        .properties()
        .forEach(entry -> environment.put(entry.getKey(), entry.getValue().asText()));
    return Map.copyOf(environment);
  }

  /**
   * Suspends a virtual GPU that was acquired here.
   *
   * @param name the name in its request
   * @return how long it took, in milliseconds
   * @throws InterruptedException if this thread is interrupted
   */
  public double suspendMs(String name) throws InterruptedException {
    return ask("suspend " + name).path("ms").asDouble();
  }

  /**
   * Resumes a virtual GPU that was acquired here.
   *
   * @param name the name in its request
   * @return how long it took, in milliseconds
   * @throws InterruptedException if this thread is interrupted
   */
  public double resumeMs(String name) throws InterruptedException {
    return ask("resume " + name).path("ms").asDouble();
  }

  /**
   * Closes a virtual GPU that was acquired here.
   *
   * @param name the name in its request
   * @throws InterruptedException if this thread is interrupted
   */
  public void release(String name) throws InterruptedException {
    ask("release " + name);
  }

  /**
   * {@return all leases of the node, an array: {@code id}, {@code memory}, {@code processes},
   * {@code gpu_ns}, {@code launches}, {@code denied}}
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public JsonNode leases() throws InterruptedException {
    return ask("leases").path("leases");
  }

  /**
   * {@return the names of the pool's GPUs, an array}
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public JsonNode gpus() throws InterruptedException {
    return ask("gpus").path("gpus");
  }

  /**
   * {@return the memory of processes by GPU, in bytes: {@code truth} according to the driver,
   * {@code ledger} according to the leases}
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public JsonNode truth() throws InterruptedException {
    return ask("truth").path("gpus");
  }

  /**
   * {@return the used bytes of its heap after a collection}
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public long heapBytes() throws InterruptedException {
    return ask("heap").path("heap").asLong();
  }

  /**
   * {@return how the node's GPUs are currently shared, an array: {@code gpu}, {@code mode}, {@code
   * reason}, {@code switches}}
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public JsonNode states() throws InterruptedException {
    return ask("states").path("states");
  }

  /**
   * {@return the number of turns that the seat has given on all GPUs}
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public long switches() throws InterruptedException {
    long switches = 0;
    for (JsonNode state : states()) {
      switches += state.path("switches").asLong();
    }
    return switches;
  }

  /**
   * {@return the bytes that all processes of all leases hold}
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public long memoryHeld() throws InterruptedException {
    long bytes = 0;
    for (JsonNode lease : leases()) {
      bytes += lease.path("memory").asLong();
    }
    return bytes;
  }

  /**
   * {@return the processes of all leases}
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public int processes() throws InterruptedException {
    int count = 0;
    for (JsonNode lease : leases()) {
      count += lease.path("processes").asInt();
    }
    return count;
  }

  /**
   * Starts to produce garbage in the JVM, so that its collector stops it repeatedly.
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public void litter() throws InterruptedException {
    ask("litter");
  }

  /**
   * Stops producing garbage.
   *
   * @return the collections: {@code collections}, {@code collecting_ms}, {@code full}, {@code
   *     full_p50_ms}, {@code full_max_ms}
   * @throws InterruptedException if this thread is interrupted
   */
  public Map<String, Double> tidy() throws InterruptedException {
    Map<String, Double> figures = new HashMap<>();
    ask("tidy")
        .properties()
        .forEach(entry -> figures.put(entry.getKey(), entry.getValue().asDouble()));
    return Map.copyOf(figures);
  }

  /** Kills it. */
  @Override
  public void close() {
    child.close();
  }
}
