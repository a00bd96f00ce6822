package dev.vgpu.cuda.suspend;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuSuspendException;
import dev.vgpu.cuda.TestGpu;
import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.testing.ReusedPid;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Suspends processes with a stand-in for {@code cuda-checkpoint}, because the driver lacks the
 * functions: a script with the same options that keeps each process's state in a file.
 */
class CheckpointSuspenderTest {
  private static final PhysicalGpu GPU = TestGpu.named("GPU-1");
  private static final Duration SOON = Duration.ofSeconds(20);

  @TempDir Path temporary;
  private final List<Process> processes = new ArrayList<>();
  private Path states;
  private Path tool;

  @BeforeEach
  void prepare() throws IOException {
    states = Files.createDirectories(temporary.resolve("states"));
    tool = Files.createDirectories(temporary.resolve("bin")).resolve("cuda-checkpoint");
    Files.writeString(tool, script("--get-state --action --toggle"));
    Files.setPosixFilePermissions(tool, PosixFilePermissions.fromString("rwx------"));
  }

  @AfterEach
  void end() {
    processes.forEach(Process::destroyForcibly);
  }

  /** The state of a process is in a file; fail-STEP holds how a step fails. */
  private String script(String help) {
    return String.join(
        "\n",
        "#!/bin/sh",
        "cd '" + states + "'",
        "while [ $# -gt 0 ]; do",
        "  case $1 in",
        "    --help) echo '" + help + "'; exit 0 ;;",
        "    --get-state) step=state; shift ;;",
        "    --action) step=$2; shift 2 ;;",
        "    --pid) pid=$2; shift 2 ;;",
        "    --timeout) shift 2 ;;",
        "    *) echo \"what is $1\" >&2; exit 2 ;;",
        "  esac",
        "done",
        "echo \"$step $pid\" >> log",
        "state=$(cat \"$pid\" 2>/dev/null || echo running)",
        "if [ $step = state ]; then echo $state; exit 0; fi",
        "if [ -f fail-$step ]; then",
        "  how=$(cat fail-$step)",
        "  case $how in hang) exec sleep 60 ;; once) rm fail-$step ;; esac",
        "  echo \"$step: CUDA_ERROR ($how)\" >&2; exit 1",
        "fi",
        "case $step-$state in",
        "  lock-running|restore-checkpointed) echo locked > $pid ;;",
        "  checkpoint-locked) echo checkpointed > $pid ;;",
        "  unlock-locked) echo running > $pid ;;",
        "  *) echo \"$step: CUDA_ERROR_ILLEGAL_STATE (401)\" >&2; exit 1 ;;",
        "esac",
        "");
  }

  private CheckpointSuspender suspender() {
    return suspender(Map.of());
  }

  private CheckpointSuspender suspender(Map<String, String> more) {
    Map<String, String> environment = new HashMap<>();
    environment.put("PATH", tool.getParent().toString());
    // A library that is no driver: our own program finds no functions in it.
    environment.put("VGPU_CUDA_DRIVER", "/nowhere/libcuda.so.1");
    environment.putAll(more);
    CheckpointSuspender made =
        new CheckpointSuspender(environment, Path.of("/proc"), NanoClock.SYSTEM);
    made.begin(temporary.resolve("run"));
    return made;
  }

  private long process() throws IOException {
    return process(Map.of());
  }

  private long process(Map<String, String> variables) throws IOException {
    ProcessBuilder builder = new ProcessBuilder("sleep", "60");
    builder.environment().putAll(variables);
    Process started = builder.start();
    processes.add(started);
    return started.pid();
  }

  private String state(long pid) throws IOException {
    Path file = states.resolve(Long.toString(pid));
    return Files.exists(file) ? Files.readString(file).strip() : "running";
  }

  private void fail(String step, String how) throws IOException {
    Files.writeString(states.resolve("fail-" + step), how);
  }

  @Test
  void locksAllBeforeItSuspendsTheFirstAndBringsAllBack() throws Exception {
    CheckpointSuspender suspender = suspender();
    long first = process();
    long second = process();
    assertThat(suspender.obstacle(GPU)).isEmpty();
    suspender.suspend(GPU, List.of(first, second), SOON);
    assertThat(state(first)).isEqualTo("checkpointed").isEqualTo(state(second));
    assertThat(Files.readAllLines(states.resolve("log")))
        .filteredOn(line -> !line.startsWith("state"))
        .containsExactly(
            "lock " + first, "lock " + second, "checkpoint " + first, "checkpoint " + second);
    suspender.suspend(GPU, List.of(first, second), SOON); // nothing more to do
    assertThat(suspender.recover(GPU, List.of(first, second), SOON)).isTrue();
    suspender.resume(GPU, List.of(first, second), SOON);
    assertThat(state(first)).isEqualTo("running").isEqualTo(state(second));
    suspender.resume(GPU, List.of(first, second), SOON);
    assertThat(suspender.recover(GPU, List.of(first, second), SOON)).isFalse();
  }

  @ParameterizedTest
  @ValueSource(strings = {"lock", "checkpoint"})
  void whatFailsHalfWayLeavesNobodyLocked(String step) throws Exception {
    CheckpointSuspender suspender = suspender();
    long first = process();
    long second = process();
    fail(step, "801");
    assertThatThrownBy(() -> suspender.suspend(GPU, List.of(first, second), SOON))
        .isInstanceOf(GpuSuspendException.class)
        .hasMessageContaining("managed memory")
        .hasMessageContaining("pid=" + first);
    assertThat(state(first)).isEqualTo("running").isEqualTo(state(second));
  }

  @Test
  void stepThatHangsIsEndedAtTheDeadlineAndUndone() throws Exception {
    CheckpointSuspender suspender = suspender();
    long pid = process();
    fail("checkpoint", "hang");
    assertThatThrownBy(() -> suspender.suspend(GPU, List.of(pid), Duration.ofMillis(400)))
        .isInstanceOf(GpuSuspendException.class)
        .hasMessageContaining("is it stopped");
    assertThat(state(pid)).isEqualTo("running");
  }

  @Test
  void unlockThatFailsOnceIsTriedAgain() throws Exception {
    CheckpointSuspender suspender = suspender();
    long pid = process();
    suspender.suspend(GPU, List.of(pid), SOON);
    fail("unlock", "once");
    suspender.resume(GPU, List.of(pid), SOON);
    assertThat(state(pid)).isEqualTo("running");
  }

  @Test
  void whereOneHasNoRoomAllStaySuspended() throws Exception {
    CheckpointSuspender suspender = suspender();
    long first = process();
    long second = process();
    suspender.suspend(GPU, List.of(first, second), SOON);
    Files.writeString(
        tool, script("--get-state --action").replace("fail-$step", "fail-$step-$pid"));
    Files.writeString(states.resolve("fail-restore-" + second), "2");
    assertThatThrownBy(() -> suspender.resume(GPU, List.of(first, second), SOON))
        .isInstanceOf(GpuSuspendException.class)
        .hasMessageContaining("no room for its memory");
    assertThat(state(first)).isEqualTo("checkpointed").isEqualTo(state(second));
  }

  /** The suspending process was killed between two steps. */
  @Test
  void whatWasLeftHalfDoneRunsAgain() throws Exception {
    CheckpointSuspender suspender = suspender();
    long locked = process();
    long suspended = process();
    long running = process();
    Files.writeString(states.resolve("" + locked), "locked");
    Files.writeString(states.resolve("" + suspended), "checkpointed");
    assertThat(suspender.recover(GPU, List.of(locked, suspended, running), SOON)).isFalse();
    assertThat(List.of(state(locked), state(suspended), state(running))).containsOnly("running");
  }

  @Test
  void processThatSomebodyElseHasLockedIsLeftAlone() throws Exception {
    CheckpointSuspender suspender = suspender();
    long pid = process();
    Files.writeString(states.resolve("" + pid), "locked");
    assertThatThrownBy(() -> suspender.suspend(GPU, List.of(pid), SOON))
        .hasMessageContaining("another process has locked it");
    assertThat(state(pid)).isEqualTo("locked");
  }

  @Test
  void failedProcessIsNamed() throws Exception {
    CheckpointSuspender suspender = suspender();
    long pid = process();
    Files.writeString(states.resolve("" + pid), "failed");
    assertThatThrownBy(() -> suspender.resume(GPU, List.of(pid), SOON))
        .hasMessageContaining("has to be ended");
  }

  @Test
  void processUnderMpsIsRefusedBeforeItIsTouched() throws Exception {
    CheckpointSuspender suspender = suspender();
    Path pipes = Files.createDirectories(temporary.resolve("mps"));
    Files.createFile(pipes.resolve("control"));
    long pid = process(Map.of("CUDA_MPS_PIPE_DIRECTORY", pipes.toString()));
    assertThatThrownBy(() -> suspender.suspend(GPU, List.of(pid), SOON))
        .hasMessageContaining("it runs under MPS");
    assertThat(Files.readString(states.resolve("log"))).doesNotContain("lock");
  }

  @Test
  void oneThatIsGoneIsNobodysLoss() throws Exception {
    CheckpointSuspender suspender = suspender();
    long pid = process();
    Process last = processes.get(0);
    last.destroyForcibly();
    assertThat(last.waitFor()).isNotZero();
    suspender.suspend(GPU, List.of(pid), SOON);
    suspender.resume(GPU, List.of(pid), SOON);
  }

  @Test
  void processThatHasTheNumberOfOneThatHasEndedMeanwhileIsNotTouched() throws Exception {
    Path locks = states.resolve("locks");
    Path go = states.resolve("go");
    String waits =
        "[ $step != lock ] || touch locks; while [ -f locks -a ! -f go ]; do sleep 0.05; done";
    Files.writeString(
        tool, script("--get-state --action").replace("state=$(cat", waits + "\nstate=$(cat"));
    CheckpointSuspender suspender = suspender();
    long first = process();
    long second = process();
    FutureTask<?> suspends =
        new FutureTask<>(() -> suspender.suspend(GPU, List.of(first, second), SOON), null);
    new Thread(suspends).start();
    while (!Files.exists(locks)) {
      assertThat(Thread.interrupted()).as("the test's time is over").isFalse();
      Thread.onSpinWait();
    }
    processes.get(1).destroyForcibly().waitFor();
    ReusedPid.start(second, "sleep", "60").ifPresent(processes::add);
    Files.createFile(go);
    suspends.get();
    assertThat(state(first)).isEqualTo("checkpointed");
    assertThat(Files.readAllLines(states.resolve("log")))
        .contains("lock " + first)
        .doesNotContain("lock " + second, "checkpoint " + second);
  }

  @Test
  void withoutAnyOfThemTheReasonsAreTold() {
    CheckpointSuspender suspender = suspender(Map.of("PATH", temporary.toString()));
    assertThat(suspender.obstacle(GPU))
        .hasValueSatisfying(
            reason -> assertThat(reason).contains("no driver", "no cuda-checkpoint in PATH"));
    assertThat(suspender.obstacle(TestGpu.named("host"))).isPresent();
    assertThatThrownBy(() -> suspender.suspend(GPU, List.of(1L), SOON))
        .isInstanceOf(GpuSuspendException.class)
        .hasMessageContaining("driver 570 or later");
  }

  @Test
  void aDriverThatAnotherUserCanChangeIsNotLoaded() throws IOException {
    Path open = Files.createDirectory(temporary.resolve("open"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    String driver = open.resolve("libcuda.so.1").toString();
    CheckpointSuspender suspender =
        suspender(Map.of("PATH", temporary.toString(), "VGPU_CUDA_DRIVER", driver));
    assertThat(suspender.obstacle(GPU))
        .hasValueSatisfying(
            reason -> assertThat(reason).contains("VGPU_CUDA_DRIVER", "every user can write"));
  }

  /** The state follows from the open files: none here, so it is suspended. */
  @Test
  void firstVersionOfTheProgramOnlyToggles() throws Exception {
    Path proc = Files.createDirectories(temporary.resolve("proc"));
    long pid = process();
    Path files = Files.createDirectories(proc.resolve(pid + "/fd"));
    Path device = files.resolve("7");
    Files.createSymbolicLink(device, Path.of("/dev/nvidia0"));
    Files.writeString(
        tool,
        String.join(
            "\n",
            "#!/bin/sh",
            "if [ -L '" + device + "' ]; then",
            "  rm '" + device + "'",
            "else",
            "  ln -s /dev/nvidia0 '" + device + "'",
            "fi",
            ""));
    ToggleTool toggle = new ToggleTool(new ToolProcess(tool.toString(), Map.of()), proc);
    assertThat(toggle.state(pid)).isEqualTo(CheckpointTool.State.RUNNING);
    toggle.take(CheckpointTool.Step.LOCK, pid, SOON.toNanos());
    toggle.take(CheckpointTool.Step.CHECKPOINT, pid, SOON.toNanos());
    toggle.take(CheckpointTool.Step.CHECKPOINT, pid, SOON.toNanos());
    assertThat(toggle.state(pid)).isEqualTo(CheckpointTool.State.CHECKPOINTED);
    toggle.take(CheckpointTool.Step.RESTORE, pid, SOON.toNanos());
    toggle.take(CheckpointTool.Step.UNLOCK, pid, SOON.toNanos());
    assertThat(toggle.state(pid)).isEqualTo(CheckpointTool.State.RUNNING);
    assertThat(toggle.state(pid + 1)).isEqualTo(CheckpointTool.State.UNKNOWN);
  }
}
