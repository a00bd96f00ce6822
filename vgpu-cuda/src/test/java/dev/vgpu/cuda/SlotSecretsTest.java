package dev.vgpu.cuda;

import static dev.vgpu.cuda.layout.ShmLayout.NO_SLOT;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_BAD;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_OK;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_SECRET;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.cuda.hook.HookMessage;
import dev.vgpu.cuda.hook.SlotSecrets;
import dev.vgpu.cuda.process.ProcFiles;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Processes that name a lease, a slot or a process that is not theirs. */
@Timeout(60)
class SlotSecretsTest {
  private static final ProcFiles PROC = new ProcFiles(Path.of("/proc"));
  private static final long SELF = ProcessHandle.current().pid();

  @TempDir private Path run;
  private final List<AutoCloseable> toClose = new ArrayList<>();
  private Enforcement seat;
  private EnforcedLease lease;
  private FakeHook victim;

  @BeforeEach
  void openSeat() throws IOException {
    Files.createFile(run.resolve("hook.so"));
    seat = seat();
    lease = prepare("victim");
    prepare("attacker");
    victim = hook("victim");
    assertThat(victim.hello(NO_SLOT).status()).isEqualTo(STATUS_OK);
    assertThat(victim.charge(1_000)).isTrue();
  }

  private Enforcement seat() {
    Map<String, String> environment =
        Map.of("VGPU_HOOK", run.resolve("hook.so").toString(), "VGPU_CONTEXT_MEMORY", "65536");
    Enforcement opened = new CudaHookBackend(environment).open(run);
    toClose.add(opened);
    return opened;
  }

  private EnforcedLease prepare(String id) throws IOException {
    Path directory = Files.createDirectories(run.resolve("leases").resolve(id));
    VirtualGpuRequest request =
        VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(64)).build();
    return seat.prepare(id, directory, TestGpu.named("GPU-1"), request, new SilentListener());
  }

  /** A hook that has not sent HELLO yet. */
  private FakeHook hook(String id) throws IOException {
    return hook(id, SELF);
  }

  private FakeHook hook(String id, long pid) throws IOException {
    FakeHook hook = new FakeHook(run, id, pid, PROC.pidNamespace());
    toClose.add(hook);
    return hook;
  }

  @AfterEach
  void closeAll() throws Exception {
    for (int i = toClose.size() - 1; i >= 0; i--) {
      toClose.get(i).close();
    }
  }

  private void assertVictimIsAsBefore() throws IOException {
    assertThat(lease.processes()).containsExactly(SELF);
    assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ofBytes(1_000 * 256));
    victim.want();
    assertThat(lease.hasWork()).isTrue();
    assertThat(victim.channel.isOpen()).isTrue();
  }

  private static void assertCutOff(FakeHook hook) throws IOException {
    assertThat(hook.channel.read(ByteBuffer.allocate(1))).isNegative();
  }

  @Test
  void anotherLeasesProcessGetsNeitherTheVictimsSlotNorANewOne() throws Exception {
    FakeHook own = hook("attacker");
    assertThat(own.hello(NO_SLOT).status()).isEqualTo(STATUS_OK);
    for (int number : new int[] {victim.slot, NO_SLOT}) {
      for (String secrets :
          new String[] {own.leaseSecret(), own.leaseSecret() + " " + own.slotSecret, "", " "}) {
        FakeHook thief = hook("victim"); // with the victim's pid, start time and namespace
        HookMessage answer = thief.hello(number, secrets);
        assertThat(answer.status()).isEqualTo(STATUS_SECRET);
        assertCutOff(thief);
      }
    }
    assertVictimIsAsBefore();
  }

  @Test
  void anotherProcessOfTheLeaseDoesNotGetTheSlot() throws Exception {
    FakeHook other = hook("victim");
    assertThat(other.hello(NO_SLOT).status()).isEqualTo(STATUS_OK);
    for (String secrets :
        new String[] {
          victim.leaseSecret(),
          victim.leaseSecret() + " ",
          victim.leaseSecret() + " " + other.slotSecret
        }) {
      FakeHook thief = hook("victim");
      HookMessage answer = thief.hello(victim.slot, secrets);
      assertThat(answer.status()).isEqualTo(STATUS_SECRET);
      assertThat(answer.text()).isEqualTo("the slot is not of this process");
    }
    other.close();
    FakeHook again = victim.again(run);
    toClose.add(again);
    assertThat(again.slot).isEqualTo(victim.slot);
  }

  @Test
  void aHookOfAnOlderVersionIsToldWhy() throws Exception {
    HookMessage answer = hook("victim").hello(NO_SLOT, "");
    assertThat(answer.status()).isEqualTo(STATUS_SECRET);
    assertThat(answer.text()).contains("did not send the lease's secret", "older version");
  }

  @Test
  void inventedProcessesHoldNoSlots() throws Exception {
    for (long pid = (1L << 32) - 200; pid < 1L << 32; pid++) { // more than a kernel assigns
      HookMessage answer = hook("victim", pid).hello(NO_SLOT);
      assertThat(answer.status()).isEqualTo(STATUS_BAD);
      assertThat(answer.text()).contains("no such process: pid=" + pid);
    }
    assertVictimIsAsBefore();
    assertThat(hook("victim").hello(NO_SLOT).status()).isEqualTo(STATUS_OK);
  }

  @Test
  void oneProcessHoldsFewSlots() throws Exception {
    List<HookMessage> answers = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      answers.add(hook("victim").hello(NO_SLOT));
    }
    assertThat(answers.stream().filter(answer -> answer.status() == STATUS_OK)).hasSize(3);
    assertThat(answers.get(9).text()).isEqualTo("the process has 4 slots already");
  }

  @Test
  void theNextSeatAsksForTheSameSecrets() throws Exception {
    String secret = victim.leaseSecret();
    seat.close();
    seat = seat();
    lease = prepare("victim");
    assertThat(victim.leaseSecret()).isEqualTo(secret).matches("[0-9a-f]{32}");
    assertThat(hook("victim").hello(victim.slot, secret + " " + "0".repeat(32)).status())
        .isEqualTo(STATUS_SECRET);
    FakeHook again = victim.again(run);
    toClose.add(again);
    assertThat(again.slotSecret).isEqualTo(victim.slotSecret);
  }

  @Test
  void noTwoLeasesNorSlotsHaveTheSameSecret() throws Exception {
    FakeHook other = hook("attacker");
    assertThat(other.hello(NO_SLOT).status()).isEqualTo(STATUS_OK);
    FakeHook second = hook("victim");
    assertThat(second.hello(NO_SLOT).status()).isEqualTo(STATUS_OK);
    assertThat(List.of(victim.leaseSecret(), other.leaseSecret())).doesNotHaveDuplicates();
    assertThat(List.of(victim.slotSecret, other.slotSecret, second.slotSecret))
        .doesNotHaveDuplicates();
  }

  @Test
  void theKeyIsTheSeatsAloneAndADamagedOneIsMadeAnew() throws Exception {
    Path file = run.resolve(SlotSecrets.KEY_FILE);
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
        .isEqualTo("rw-------");
    byte[] key = Files.readAllBytes(file);
    assertThat(SlotSecrets.key(run)).isEqualTo(key);
    Files.write(file, new byte[7]);
    assertThat(SlotSecrets.key(run)).hasSize(32).isNotEqualTo(key);
    Path elsewhere = Files.write(run.resolve("planted"), new byte[32]);
    Files.delete(file);
    Files.createSymbolicLink(file, elsewhere);
    assertThat(SlotSecrets.key(run)).isNotEqualTo(new byte[32]);
    assertThat(Files.isSymbolicLink(file)).isFalse();
    assertThatThrownBy(() -> SlotSecrets.key(run.resolve("nowhere")))
        .isInstanceOf(IOException.class);
  }
}
