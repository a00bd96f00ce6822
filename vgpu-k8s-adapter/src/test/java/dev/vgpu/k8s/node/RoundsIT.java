package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.k8s.node.holding.Step;
import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.testing.TestSeed;
import dev.vgpu.watch.GpuLease;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Creates and deletes pods in both ways, round after round, in random order. Nothing is left:
 * virtual GPUs, files, descriptors, threads, objects. {@code VGPU_POD_ROUNDS} sets the number of
 * rounds.
 */
@Timeout(value = 2, unit = TimeUnit.HOURS)
class RoundsIT {
  private static final int ROUNDS =
      Integer.parseInt(System.getenv().getOrDefault("VGPU_POD_ROUNDS", "40"));
  private static final int SLOTS = 8;
  private static final int PROGRAM_EVERY = 20;

  /** A role that is to die does so at one of so many steps of the same kind. */
  private static final int MOST_STEPS = 6;

  private static final Predicate<String> OURS =
      Pattern.compile(
              "dev\\.vgpu\\.(?!backend|request|watch)[a-z0-9]+\\.(?!turn\\.UsageReading)[^/]*")
          .asMatchPredicate();

  private final Random random = new Random(TestSeed.seed());

  /** The pods that run, by slot. */
  private final Map<String, Running> running = new TreeMap<>();

  /** The claims that are prepared, by name. */
  private final Map<String, Prepared> prepared = new HashMap<>();

  private TestNode node;
  private StrictDevices devices;
  private RoleProcess role;
  private boolean mayDie;
  private int deaths;
  private int number;

  private record Running(String pod, String cdi) {}

  private record Prepared(Claim claim, String cdi) {}

  @BeforeEach
  void open() throws Exception {
    node = new TestNode();
    devices = node.devices();
    role = new RoleProcess(node);
  }

  @AfterEach
  void close() throws Exception {
    role.close();
    devices.close();
    node.close();
  }

  /** Starts the role until it lives long enough to be connected to. */
  private void start() throws IOException, InterruptedException {
    do {
      int before = devices.registrations.get();
      if (mayDie) {
        List<Step> steps = List.of(Step.values());
        Step step = steps.get(random.nextInt(steps.size()));
        role.start(step.name(), 1 + random.nextInt(MOST_STEPS));
      } else {
        role.start();
      }
      TestNode.await(
          "registered, or dead", () -> devices.registrations.get() > before || !role.isAlive());
    } while (hasDied() || !isConnected());
  }

  private boolean hasDied() throws InterruptedException {
    if (role.isAlive()) {
      return false;
    }
    role.awaitDeath();
    deaths++;
    return true;
  }

  private boolean isConnected() throws IOException, InterruptedException {
    try {
      assertThat(devices.connect()).hasSize(SLOTS);
      node.kubelet.register();
      return true;
    } catch (StatusRuntimeException e) {
      diedOf(e);
      return false;
    }
  }

  /** The call broke off, because the role has died. */
  private void diedOf(StatusRuntimeException e) throws InterruptedException {
    if (!mayDie) {
      throw e;
    }
    role.awaitDeath();
    deaths++;
  }

  private interface Call {
    void run() throws IOException;
  }

  /** The kubelet's behaviour: what breaks off is called again. */
  private void call(Call call) throws IOException, InterruptedException {
    while (true) {
      try {
        call.run();
        return;
      } catch (StatusRuntimeException e) {
        diedOf(e);
        start();
      }
    }
  }

  private void round() throws Exception {
    if (random.nextBoolean()) {
      slotRound("slot-" + random.nextInt(SLOTS));
    } else {
      claimRound("claim-" + random.nextInt(4));
    }
  }

  private void slotRound(String slot) throws Exception {
    Running before = running.remove(slot);
    if (before != null) {
      endPod(before, slot);
      if (random.nextBoolean()) {
        return;
      }
    }
    String name = "pod-" + number++;
    Pod ignored = node.pod(name, node.reservation(5, "256Mi"));
    String cdi;
    try {
      cdi = devices.admit(name, "main", slot);
    } catch (StatusRuntimeException e) {
      diedOf(e); // the kubelet does not admit the pod
      devices.ended(name, slot);
      node.delete(name);
      start();
      return;
    }
    call(() -> devices.preStart(slot));
    running.put(slot, new Running(name, cdi));
  }

  private void endPod(Running pod, String slot) {
    devices.ended(pod.pod(), slot);
    node.delete(pod.pod());
  }

  private void claimRound(String name) throws Exception {
    Prepared before = prepared.remove(name);
    if (before != null) {
      unprepare(before);
      return;
    }
    Claim claim = node.create(ClaimJson.allocated(name, node.device(1), 5, "256Mi"));
    String[] cdi = new String[1];
    call(() -> cdi[0] = node.kubelet.prepare(claim).get(0).getCdiDeviceIds(0));
    prepared.put(name, new Prepared(claim, cdi[0]));
  }

  private void unprepare(Prepared one) throws Exception {
    call(() -> node.kubelet.unprepare(one.claim()));
    node.api
        .resources(ResourceClaim.class)
        .inNamespace("team")
        .withName(one.claim().getName())
        .delete();
  }

  /** Every pod and claim has one virtual GPU, and its CDI file names it; there are no others. */
  private void check() throws Exception {
    boolean mayDieAgain = mayDie;
    if (mayDieAgain) {
      restart(false);
    }
    List<String> all = new ArrayList<>();
    running.values().forEach(one -> all.add(one.cdi()));
    prepared.values().forEach(one -> all.add(one.cdi()));
    TestNode.await("each has its own, and nothing else is held", () -> isHeld(all));
    runProgram();
    if (mayDieAgain) {
      restart(true);
    }
  }

  private void restart(boolean toDie) throws Exception {
    mayDie = toDie;
    role.kill();
    start();
  }

  private boolean isHeld(List<String> all) {
    List<String> leases = node.pool.leases().stream().map(GpuLease::id).sorted().toList();
    List<String> named = new ArrayList<>();
    for (String cdi : all) {
      if (node.kubelet.edits(cdi).isEmpty()) {
        return false;
      }
      named.add(node.kubelet.variable(cdi, "VGPU_LEASE"));
    }
    return leases.equals(named.stream().sorted().toList());
  }

  /** A program in one of the containers gets its quota, and not more. */
  private void runProgram() throws Exception {
    if (running.isEmpty()) {
      return;
    }
    Running one = running.values().iterator().next();
    Process program = node.program(one.cdi(), "hoard", "--chunk", "16MiB", "--json");
    byte[] said = program.getInputStream().readAllBytes();
    assertThat(program.waitFor()).as(new String(said, StandardCharsets.UTF_8)).isZero();
    assertThat(new ObjectMapper().readTree(said).path("bytes").asLong())
        .isBetween(64L << 20, 256L << 20);
  }

  private void endAll() throws Exception {
    for (Map.Entry<String, Running> one : running.entrySet()) {
      endPod(one.getValue(), one.getKey());
    }
    running.clear();
    for (Prepared one : List.copyOf(prepared.values())) {
      unprepare(one);
    }
    prepared.clear();
  }

  private void holdsNothing() throws Exception {
    TestNode.await("no lease", () -> node.pool.leases().isEmpty());
    TestNode.await("no files", () -> paths("cdi").isEmpty() && paths("plugins/held").isEmpty());
  }

  /** The paths below one of the node's directories. */
  private Set<String> paths(String name) {
    Path top = node.directory.resolve(name);
    try (Stream<Path> files = Files.walk(top)) {
      return files
          .filter(one -> !one.equals(top))
          .map(one -> top.relativize(one).toString())
          .collect(Collectors.toCollection(TreeSet::new));
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private long threads() {
    try (Stream<Path> all = Files.list(ofRole("task"))) {
      return all.count();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /**
   * What the role has open. A jar and the emulated GPUs' file do not count once: the role opens
   * them when it first needs them, which may be at any time.
   */
  private List<String> descriptors() {
    try (Stream<Path> all = Files.list(ofRole("fd"))) {
      List<String> found = new ArrayList<>(all.map(RoundsIT::target).sorted().toList());
      found.stream()
          .filter(one -> one.endsWith(".jar") || one.endsWith("/gpus"))
          .distinct()
          .toList()
          .forEach(found::remove);
      return found;
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static String target(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString();
    } catch (IOException e) {
      return "closed meanwhile";
    }
  }

  private Path ofRole(String entry) {
    return Path.of("/proc", Long.toString(role.pid()), entry);
  }

  /**
   * The objects of vgpu's modules in the role, after a collection. The pool keeps the most recent
   * events, and with them values of the API and readings: these are left out.
   */
  private Map<String, Long> objects() {
    Map<String, Long> found = new TreeMap<>();
    String text = histogram();
    for (String line : text.lines().toList()) {
      String[] columns = line.strip().split("\\s+", -1);
      if (columns.length >= 4 && OURS.test(columns[3])) {
        found.merge(columns[3], Long.parseLong(columns[1]), Long::sum);
      }
    }
    assertThat(found).as(text).isNotEmpty();
    return found;
  }

  private Map<String, Long> moreThan(Map<String, Long> before) {
    Map<String, Long> more = objects();
    more.entrySet().removeIf(one -> one.getValue() <= before.getOrDefault(one.getKey(), 0L));
    return more;
  }

  private String histogram() {
    try {
      Process jcmd =
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home"), "bin", "jcmd").toString(),
                  Long.toString(role.pid()),
                  "GC.class_histogram")
              .start();
      return new String(jcmd.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** The same while the role has NVML open, as it has whenever it has read its GPUs. */
  private Map<String, Long> objectsWithReader() throws InterruptedException {
    Map<String, Long> found = new TreeMap<>();
    TestNode.await(
        "the role has read its GPUs",
        () -> {
          found.clear();
          found.putAll(objects());
          return found.containsKey("dev.vgpu.nvml.NvmlReader");
        });
    return found;
  }

  private void rounds(int count) throws Exception {
    for (int i = 1; i <= count; i++) {
      round();
      if (i % PROGRAM_EVERY == 0) {
        check();
      }
    }
    check();
    endAll();
  }

  @Test
  void nothingIsLeftAfterManyPods() throws Exception {
    start();
    rounds(PROGRAM_EVERY);
    holdsNothing();
    Map<String, Long> objects = objectsWithReader(); // first: the role then listens for jcmd
    Set<String> files = paths("");
    List<String> descriptors = descriptors();
    long threads = threads();
    rounds(ROUNDS);
    holdsNothing();
    TestNode.await("the same files", () -> paths("").equals(files));
    TestNode.await(
        "no more descriptors than " + descriptors,
        () -> descriptors().size() <= descriptors.size());
    TestNode.await("no more threads", () -> threads() <= threads);
    // Workers of the pool that have nothing to do end after a while.
    TestNode.await("no more objects than before", () -> moreThan(objects).isEmpty());
    assertThat(node.api.pods().inAnyNamespace().list().getItems()).isEmpty();
  }

  @Test
  void nothingIsLeftAfterManyPodsAndDeaths() throws Exception {
    mayDie = true;
    start();
    rounds(ROUNDS);
    restart(false);
    holdsNothing();
    assertThat(deaths).isPositive();
    System.out.println("RoundsIT: rounds=" + ROUNDS + " deaths=" + deaths);
  }
}
