package dev.vgpu.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.files.ProcessUser;
import dev.vgpu.testing.KernelVersion;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * A seat of root, in a directory that root has opened to a group, and processes of two members.
 * Needs root, which can become other users, and setpriv of util-linux.
 */
class GroupSeatIT {
  private static final int GROUP = 54_300;
  private static final int ALICE = 54_301;
  private static final int BOB = 54_302;

  /** Files that all users can read: the class path of the tests may be in root's home. */
  private static Path readable;

  private CommandNode node;
  private CommandNode.Command serve;

  @BeforeAll
  static void copyTheClassPath() throws IOException {
    assumeTrue(ProcessUser.id() == 0);
    readable = Files.createTempDirectory(Path.of("/tmp"), "vgpu-g");
    Files.setPosixFilePermissions(readable, PosixFilePermissions.fromString("rwxr-xr-x"));
    int number = 0;
    for (String each : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
      copy(Path.of(each), readable.resolve(number++ + (each.endsWith(".jar") ? ".jar" : "")));
    }
    copy(Path.of(CommandNode.program("spin")), readable.resolve("spin"));
  }

  private static void copy(Path from, Path to) throws IOException {
    if (!Files.exists(from)) {
      return;
    }
    try (Stream<Path> files = Files.walk(from)) {
      for (Path file : (Iterable<Path>) files::iterator) {
        Path copy = Files.isSameFile(file, from) ? to : to.resolve(from.relativize(file));
        if (!Files.isDirectory(copy)) {
          Files.copy(file, copy, StandardCopyOption.COPY_ATTRIBUTES);
        }
        boolean runs = Files.isDirectory(copy) || Files.isExecutable(copy);
        Files.setPosixFilePermissions(
            copy, PosixFilePermissions.fromString(runs ? "rwxr-xr-x" : "rw-r--r--"));
      }
    }
  }

  @AfterAll
  static void removeTheCopy() throws IOException {
    if (readable != null) {
      try (Stream<Path> files = Files.walk(readable)) {
        files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
      }
    }
  }

  @BeforeEach
  void serve() throws Exception {
    node = CommandNode.openForGroup(GROUP);
    serve = node.vgpu("serve").prints("holding the seat of");
  }

  @AfterEach
  void close() throws IOException {
    node.close();
  }

  /** Starts a command as a user with a group of its own, and the seat's group if it is a member. */
  private CommandNode.Command as(int user, int group, boolean member, List<String> command)
      throws IOException {
    List<String> words = new ArrayList<>(List.of("setpriv", "--reuid", "" + user));
    words.addAll(List.of("--regid", "" + group));
    words.addAll(member ? List.of("--groups", "" + GROUP) : List.of("--clear-groups"));
    words.addAll(command);
    return node.start(words, List.of("HOME=/nonexistent"));
  }

  private CommandNode.Command as(int user, String... arguments) throws IOException {
    return as(user, user, true, vgpu(arguments));
  }

  private static List<String> vgpu(String... arguments) throws IOException {
    return java("dev.vgpu.cli.VgpuCommand", arguments);
  }

  private static List<String> java(String mainClass, String... arguments) throws IOException {
    List<String> command = new ArrayList<>(CommandNode.javaCommand());
    List<String> parts = new ArrayList<>();
    try (Stream<Path> files = Files.list(readable)) {
      files.sorted(Comparator.comparing(GroupSeatIT::number)).forEach(f -> parts.add("" + f));
    }
    command.set(command.size() - 1, String.join(File.pathSeparator, parts));
    command.add(mainClass);
    command.addAll(List.of(arguments));
    return command;
  }

  private static int number(Path file) {
    String digits = file.getFileName().toString().replaceAll("\\D", "");
    return digits.isEmpty() ? Integer.MAX_VALUE : Integer.parseInt(digits);
  }

  /** A program of a user that goes on longer than any test. */
  private CommandNode.Command run(int user, String name, String... terms) throws IOException {
    List<String> arguments = new ArrayList<>(List.of("run", "--name", name));
    arguments.addAll(List.of(terms));
    arguments.addAll(List.of("--", readable.resolve("spin").toString(), "--seconds=300"));
    return as(user, arguments.toArray(new String[0]));
  }

  private JsonNode leases(int user) throws Exception {
    return as(user, "ls", "--json").succeeds().json().path("leases");
  }

  /** Waits until a user's only program has a context. */
  private String idOf(int user) throws Exception {
    JsonNode[] found = new JsonNode[1];
    for (int tries = 0; tries < 200; tries++) {
      found[0] = leases(user);
      if (found[0].path(0).path("memory_used_bytes").asLong() > 0) {
        break;
      }
    }
    assertThat(found[0]).hasSize(1);
    return found[0].path(0).path("id").asText();
  }

  @Test
  void eachMemberSeesAndChangesOnlyItsOwn() throws Exception {
    run(ALICE, "a", "--memory", "1GiB", "--compute", "30");
    run(BOB, "b", "--memory", "1GiB", "--compute", "60", "--class", "online");
    String alices = idOf(ALICE);
    String bobs = idOf(BOB);
    assertThat(node.leases()).as("root sees all").hasSize(2);

    CommandNode.Command suspends = as(BOB, "suspend", alices);
    assertThat(suspends.exitCode()).isNotZero();
    assertThat(suspends.err()).contains("no virtual GPU is called " + alices, bobs);
    as(BOB, "suspend", bobs).succeeds();
    assertThat(leases(BOB).path(0).path("suspended").asBoolean()).isTrue();
    as(BOB, "resume", bobs).succeeds();
    node.vgpu("suspend", alices).succeeds();
    node.vgpu("resume", alices).succeeds();

    assertThat(as(ALICE, "usage", "--json").succeeds().out()).contains(alices).doesNotContain(bobs);
  }

  @Test
  void onlyBackendsThatCanServeOtherUsersServeMembers() throws Exception {
    CommandNode.Command explained =
        as(ALICE, "run", "--explain", "--require=compute:spatial", "--memory=1GiB", "--", "true");
    int ignored = explained.exitCode();
    assertThat(explained.out()).contains("mps: lacks [worksFor OTHER_USERS]");
  }

  @Test
  void membersGoOnWhenTheSeatIsKilledAndTakeNoSeatThemselves() throws Exception {
    CommandNode.Command program = run(ALICE, "a", "--memory=1GiB", "--compute=30");
    String id = idOf(ALICE);
    serve.signal("KILL");
    serve.exitCode();
    CommandNode.Command nobody = as(BOB, "ls");
    assertThat(nobody.exitCode()).isNotZero();
    assertThat(nobody.err()).contains("no process of root holds the seat", "systemctl start vgpu");
    CommandNode.Command alone = as(BOB, "serve");
    assertThat(alone.exitCode()).isNotZero();
    assertThat(alone.err()).contains("only root can hold the seat of " + node.runDirectory());
    node.vgpu("serve").prints("holding the seat of");
    assertThat(idOf(ALICE)).isEqualTo(id);
    assertThat(leases(BOB)).isEmpty();
    assertThat(program.descendants()).as("the program goes on").isNotEmpty();
  }

  @Test
  void whoIsNoMemberIsToldSo() throws Exception {
    CommandNode.Command stranger = as(BOB, BOB, false, vgpu("ls"));
    assertThat(stranger.exitCode()).isNotZero();
    assertThat(stranger.err()).contains("not open to a group that this process is in");
  }

  /** The seat opens no file that a member names: it could be a pipe, or a file of root's. */
  @Test
  void aMembersProgramIsCheckedByItsOwnProcess() throws Exception {
    Path other = readable.resolve("other");
    byte[] elf = Files.readAllBytes(readable.resolve("spin"));
    elf[4] = 1; // of the 32-bit class
    Files.write(other, elf);
    Files.setPosixFilePermissions(other, PosixFilePermissions.fromString("rwx------"));
    Files.setAttribute(other, "unix:uid", ALICE);
    CommandNode.Command mine = as(ALICE, "run", "--memory", "1GiB", "--", other.toString());
    assertThat(mine.exitCode()).isNotZero();
    assertThat(mine.err()).contains("it is a 32-bit program");
    CommandNode.Command alices = as(BOB, "run", "--memory", "1GiB", "--", other.toString());
    assertThat(alices.exitCode()).isNotZero();
    assertThat(alices.err()).doesNotContain("32-bit");
  }

  /** The kernel would end the connection in a thread of the seat, which would wait for it. */
  @Test
  void connectionThatLingersIsNotTakenFromAMember() throws Exception {
    assumeTrue(KernelVersion.isAtLeast(6, 16), "older kernels cannot refuse it");
    run(BOB, "b", "--memory", "1GiB");
    String id = idOf(BOB);
    for (String socket : List.of("seat.sock", "hook.sock", "seat.sock")) {
      passLingering(socket, 0).prints("refused");
      assertThat(idOf(BOB)).isEqualTo(id);
    }
    assertThat(serve.err()).doesNotContain("gives the seat up");
  }

  /** Alice passes a TCP connection whose end takes two minutes, behind some other bytes. */
  private CommandNode.Command passLingering(String socket, int behind) throws Exception {
    Path pass = readable.resolve("pass");
    if (!Files.exists(pass)) {
      String source = "../vgpu-core/src/test/resources/pass_descriptors.c";
      node.start(List.of("cc", "-o", pass.toString(), source), List.of()).succeeds();
    }
    String to = node.runDirectory().resolve(socket).toString();
    String passes = "exec " + pass + " " + to + " 120 " + behind + " </dev/null";
    return as(ALICE, ALICE, true, List.of("sh", "-c", passes));
  }

  /** The seat takes its kernel for one that cannot refuse files, and finds them itself. */
  @Test
  void connectionThatLingersHoldsUpNoOtherMember() throws Exception {
    serve.signal("TERM");
    serve.succeeds();
    List<String> older = List.of("JAVA_TOOL_OPTIONS=-Dos.version=6.1.0");
    serve = node.vgpuWith(older, "serve").prints("holding the seat of");
    run(BOB, "b", "--memory", "1GiB");
    String id = idOf(BOB);
    for (int behind : new int[] {0, 3, 0}) { // 3 bytes: no whole frame
      passLingering("seat.sock", behind).prints("passed");
      assertThat(idOf(BOB)).isEqualTo(id);
    }
    passLingering("hook.sock", 0).prints("passed");
    assertThat(idOf(BOB)).isEqualTo(id);
    serve.signal("TERM");
    serve.succeeds();
    assertThat(serve.err()).doesNotContain("gives the seat up");
  }

  /** With 400 files, all clients may have 100 connections and 100 leases, one member 25 of each. */
  @Test
  void oneMemberCannotKeepTheOthersOut() throws Exception {
    serve.signal("TERM");
    serve.succeeds();
    node.vgpuWithFiles(400, "serve").prints("holding the seat of");
    CommandNode.Command greedy =
        as(ALICE, ALICE, true, java("dev.vgpu.cli.GreedyMember")).prints("done");
    assertThat(greedy.out())
        .contains("too many processes of this user are connected")
        .contains("leases: 25 too many virtual GPUs of one user: limit=25");
    run(BOB, "b", "--memory", "1GiB", "--compute", "10");
    idOf(BOB);
    assertThat(node.leases()).hasSize(26);
  }

  /** It would see the use of the other member's virtual GPU. */
  @Test
  void aMemberCannotClaimTheEndedVirtualGpuOfAnother() throws Exception {
    CommandNode.Command program = run(ALICE, "a", "--memory", "1GiB");
    String id = idOf(ALICE);
    String gpu = node.leases().path(0).path("gpu").asText();
    program.signal("TERM");
    int ignored = program.exitCode();
    JsonNode left = leases(ALICE);
    for (int tries = 0; tries < 60 && !left.isEmpty(); tries++) {
      left = leases(ALICE); // the seat may notice the program's end a moment later
    }
    assertThat(left).isEmpty();
    List<String> claim = java("dev.vgpu.cli.GreedyMember", id, gpu);
    assertThat(as(BOB, BOB, true, claim).succeeds().out())
        .contains("settings.", "the virtual GPU has ended: id=" + id);
    assertThat(as(ALICE, "usage", "--json").succeeds().out()).contains(id);
    assertThat(as(BOB, "usage", "--json").succeeds().out()).doesNotContain(id);
  }

  /** What it says would hold its virtual GPU until the machine restarts. */
  @Test
  void aMemberNamesNoProcessOfAnotherUser() throws Exception {
    run(ALICE, "a", "--memory", "1GiB");
    String gpu = node.leases().path(0).path("gpu").asText();
    long pid = serve.pid();
    String start = Files.readString(Path.of("/proc/" + pid + "/stat")).split(" ", -1)[21];
    List<String> names = java("dev.vgpu.cli.GreedyMember", "pid", "" + pid, start, gpu);
    assertThat(as(BOB, BOB, true, names).succeeds().out())
        .contains("the client names another user's process: pid=" + pid)
        .containsPattern("acquired: any-[0-9-]+ true");
    int left = 2;
    for (int i = 0; i < 20 && left > 1; i++) {
      left = node.leases().size();
    }
    assertThat(left).isEqualTo(1);
  }

  /** A group that several users have as their own may read the grant, and so the secret in it. */
  @Test
  void theSecretOfALeaseIsOfNoUseToAnotherUser() throws Exception {
    run(ALICE, "a", "--memory", "1GiB");
    String id = idOf(ALICE);
    Path lease = node.runDirectory().resolve("leases").resolve(id);
    assertThat(as(BOB, BOB, true, List.of("cat", lease + "/grant")).exitCode()).isNotZero();
    as(BOB, ALICE, true, List.of("cat", lease + "/grant")).succeeds();
    assertThat(as(BOB, ALICE, true, List.of("sh", "-c", ": >" + lease + "/report")).exitCode())
        .isNotZero();
    assertThat(as(ALICE, ALICE, true, List.of("sh", "-c", ": >" + lease + "/grant")).exitCode())
        .isNotZero();
    List<String> spin =
        List.of(
            "env",
            "LD_PRELOAD=" + library("libvgpu_cuda.so"),
            "VGPU_CUDA_DRIVER=" + library("libcuda.so.1"),
            "VGPU_EMULATOR_DIR=" + node.runDirectory().resolve("emulator"),
            "VGPU_LEASE=" + id,
            "VGPU_HOOK_LOG=stderr",
            readable.resolve("spin").toString(),
            "--count=1");
    CommandNode.Command thief = as(BOB, ALICE, true, spin);
    assertThat(thief.exitCode()).isNotZero();
    assertThat(thief.err()).contains("runs as another user than its virtual GPU's");
    assertThat(leases(ALICE).path(0).path("processes").asInt()).isEqualTo(1);
  }

  private Path library(String name) throws IOException {
    try (Stream<Path> libraries = Files.walk(node.runDirectory().resolve("lib"))) {
      return libraries.filter(file -> file.endsWith(name)).findFirst().orElseThrow();
    }
  }

  /** Whether a member without a virtual GPU can read a file of the run directory. */
  private boolean canRead(Path file) throws IOException {
    for (Path each = file; each.startsWith(node.runDirectory()); each = each.getParent()) {
      String rights = PosixFilePermissions.toString(Files.getPosixFilePermissions(each));
      boolean isOfGroup = Files.getAttribute(each, "unix:gid").equals(GROUP);
      String needed = each.equals(file) ? "r" : "x";
      if (!rights.substring(isOfGroup ? 3 : 6, isOfGroup ? 6 : 9).contains(needed)) {
        return false;
      }
    }
    return true;
  }

  /** What is in neither list, only root may open. */
  @Test
  void membersOpenOnlyWhatTheyNeed() throws Exception {
    run(ALICE, "a", "--memory", "1GiB");
    Path lease = node.runDirectory().resolve("leases").resolve(idOf(ALICE));
    List<String> open = new ArrayList<>();
    Set<String> readable = new TreeSet<>();
    try (Stream<Path> files = Files.walk(node.runDirectory())) {
      for (Path file : (Iterable<Path>) files.sorted()::iterator) {
        if (Files.isSymbolicLink(file)) {
          continue; // nothing can be written into it
        }
        String rights = PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
        if (Files.isRegularFile(file) && canRead(file)) {
          readable.add("" + node.runDirectory().relativize(file));
        }
        if (rights.substring(3).contains("w")
            || (file.startsWith(lease) && !Files.getAttribute(file, "unix:uid").equals(0))) {
          open.add(
              node.runDirectory().relativize(file)
                  + " "
                  + rights
                  + " "
                  + Files.getAttribute(file, "unix:uid"));
        }
      }
    }
    String inLease = "leases/" + lease.getFileName();
    assertThat(open)
        .containsExactlyInAnyOrder(
            "emulator/gpus rw-rw---- 0",
            "hook.sock rw-rw---- 0",
            "seat.sock rw-rw---- 0",
            inLease + "/hook.sock rw-rw---- 0",
            inLease + "/report rw------- " + ALICE);
    readable.removeIf(file -> file.startsWith("lib/") || file.startsWith("express/"));
    assertThat(readable).containsExactly("emulator/gpus", "leases/counter", "seat.holder");
    // Whoever may read a file can lock it.
    assertThat(Files.getPosixFilePermissions(node.runDirectory().resolve("seat.lock")))
        .isEqualTo(PosixFilePermissions.fromString("rw-------"));
  }
}
