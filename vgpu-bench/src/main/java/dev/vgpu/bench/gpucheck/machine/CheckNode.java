package dev.vgpu.bench.gpucheck.machine;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A separate node for a step, with its seat, and programs there: bare, or under virtual GPUs.
 * Confined to one thread.
 */
public final class CheckNode implements AutoCloseable {
  /** The empty environment: a program beside vgpu, not under it. */
  public static final Map<String, String> BARE = Map.of();

  private final Place place;
  private final Node node;
  private final PoolProcess pool;

  private CheckNode(Place place, Node node, PoolProcess pool) {
    this.place = place;
    this.node = node;
    this.pool = pool;
  }

  /** Opens a node. */
  public static CheckNode open(Place place) throws InterruptedException {
    return open(place, Map.of());
  }

  /** Opens a node whose processes have further environment variables. */
  public static CheckNode open(Place place, Map<String, String> settings)
      throws InterruptedException {
    Node node = Node.open(settings);
    try {
      return new CheckNode(place, node, node.openPool());
    } catch (IllegalStateException | InterruptedException e) {
      node.close();
      throw e;
    }
  }

  /** Acquires a virtual GPU; returns the environment that puts a program under it. */
  public Map<String, String> lease(
      String name, SharePolicy policy, int percent, PreemptionClass urgency, MemorySize quota)
      throws InterruptedException {
    return pool.acquire(name, policy, percent, urgency, quota);
  }

  /** Acquires a nearline virtual GPU without a share. */
  public Map<String, String> lease(String name, MemorySize quota) throws InterruptedException {
    return lease(name, SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE, quota);
  }

  /** Closes a virtual GPU. */
  public void release(String name) throws InterruptedException {
    pool.release(name);
  }

  /** {@return the first lease, as the seat sees it} */
  public JsonNode lease() throws InterruptedException {
    return pool.leases().path(0);
  }

  /** {@return the memory that all leases hold} */
  public long memoryHeld() throws InterruptedException {
    return pool.memoryHeld();
  }

  /** Starts the C program, for a dialogue in lines. */
  public Child start(Map<String, String> environment, String... arguments) {
    return node.start(environment, arguments);
  }

  /** Starts any program, for a dialogue in lines. */
  public Child start(String name, List<String> command, Map<String, String> environment) {
    return node.start(name, new ProcessBuilder(command), environment);
  }

  /** Runs a program to its end. */
  public Done run(Map<String, String> environment, double limitSeconds, List<String> command)
      throws InterruptedException {
    return Done.run(
        command, variables -> node.adapt(variables, environment), place.work(), limitSeconds);
  }

  /** {@return the path of a sample program} */
  public String samplePath(String name) {
    return place.sample(name).toString();
  }

  /** Runs a sample program to its end. */
  public Done sample(Map<String, String> environment, double limitSeconds, String... command)
      throws InterruptedException {
    List<String> all = new ArrayList<>(List.of(command));
    all.set(0, place.sample(command[0]).toString());
    if (command[0].endsWith(".py")) {
      all.add(0, Place.onPath("python3").map(Object::toString).orElse("python3"));
    }
    return run(environment, limitSeconds, all);
  }

  /** Runs the C program to its end. Safe for use by several threads. */
  public Done program(Map<String, String> environment, double limitSeconds, String... arguments)
      throws InterruptedException {
    List<String> all = new ArrayList<>(List.of(node.program().toString()));
    all.addAll(List.of(arguments));
    return run(environment, limitSeconds, all);
  }

  /** Waits until no lease holds memory. Returns milliseconds, or -1 if that takes too long. */
  public double awaitNothingHeld(double limitSeconds) throws InterruptedException {
    long beginNs = NanoClock.nanoTime();
    while ((NanoClock.nanoTime() - beginNs) / 1e9 < limitSeconds) {
      if (memoryHeld() == 0) {
        return (NanoClock.nanoTime() - beginNs) / 1e6;
      }
      NanoClock.sleepMillis(2);
    }
    return -1;
  }

  /** {@return the node under test} */
  public Node node() {
    return node;
  }

  /** {@return the end of what children wrote on standard error} */
  public String errors() {
    return Done.tail(node.errors());
  }

  @Override
  public void close() {
    node.close();
  }
}
