package dev.vgpu.cli.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuSettings;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.Arrivals;
import dev.vgpu.simulation.KernelTime;
import dev.vgpu.simulation.Mix;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class MixFileTest {
  private static final String ONE = "{name: a, arrivals: closedLoop, request: {kernelTime: 1ms}}";

  private static final String ALL =
      """
      name: all
      seed: -5
      duration: 2m
      warmUp: 1.5s
      enforcement: jvm
      costs:
        hook: {tell: 5us, inFlight: 1ms, lane: false, overlap: false}
      gpus:
        - {name: one, sharing: strict, shortestTurn: 1ms, longestTurn: 5ms, idleLinger: 0,
           offlineFloor: 7, slice: 2ms, change: 50us, memory: 8GiB}
        - {name: two}
      tenants:
        - name: chat
          gpu: two
          policy: burst
          share: 30
          class: online
          quota: 1GiB
          enforcement: hook
          join: 3s
          leave: 50s
          arrivals: {bursts: {every: 1s, size: 5, spacing: 10ms, offset: 2s}}
          request:
            kernels: {from: 2, to: 4}
            sync: 2
            hostTime: 0
            kernelTime:
              mixed:
                - {weight: 9, time: 100us}
                - {weight: 1, time: {lognormal: {median: 1ms, sigma: 0.5, most: 20ms}}}
        - name: batch
          count: 2
          after: chat
          cancelTakes: 3ms
          arrivals: {poisson: {rate: 5}}
      """;

  @TempDir private Path directory;

  private MixFile read(String text) throws Exception {
    Path file = directory.resolve("mix.yaml");
    Files.writeString(file, text);
    return MixFile.read(file, MixFile.Overrides.NONE);
  }

  private void assertRefused(String text, int line, int column, String... parts) {
    assertThatThrownBy(() -> read(text))
        .isInstanceOf(UserException.class)
        .hasMessageContaining("mix.yaml, line " + line + ", column " + column + ": ")
        .satisfies(e -> assertThat(e.getMessage()).contains(parts));
  }

  static Stream<Path> samples() throws Exception {
    Path samples = Path.of("..", "samples", "simulations");
    try (Stream<Path> files = Files.list(samples)) {
      return files.sorted().toList().stream();
    }
  }

  @ParameterizedTest
  @MethodSource("samples")
  void everySampleIsRead(Path sample) throws Exception {
    MixFile file = MixFile.read(sample, MixFile.Overrides.NONE);
    assertThat(file.title()).isNotBlank();
    assertThat(file.mix().tenants()).isNotEmpty();
  }

  @Test
  void everythingIsRead() throws Exception {
    MixFile file = read(ALL);
    Mix mix = file.mix();
    assertThat(file.title()).isEqualTo("all");
    assertThat(mix.seed()).isEqualTo(-5);
    assertThat(mix.durationNs()).isEqualTo(120_000_000_000L);
    assertThat(mix.warmUpNs()).isEqualTo(1_500_000_000L);
    assertThat(mix.gpus().get(0).sliceNs()).isEqualTo(2_000_000);
    assertThat(mix.gpus().get(0).changeNs()).isEqualTo(50_000);
    GpuSettings settings = mix.gpus().get(0).settings();
    assertThat(settings.sharing()).isEqualTo(GpuSettings.Sharing.STRICT);
    assertThat(settings.longestTurn()).isEqualTo(Duration.ofMillis(5));
    assertThat(settings.offlineFloorPercent()).isEqualTo(7);
    assertThat(mix.tenants())
        .extracting(Mix.Member::name)
        .containsExactly("chat", "batch-1", "batch-2");
    Mix.Member chat = mix.tenants().get(0);
    assertThat(chat.gpu()).isEqualTo(1);
    assertThat(chat.request().policy()).isEqualTo(SharePolicy.BURST_SHARE);
    assertThat(chat.request().preemptionClass()).isEqualTo(PreemptionClass.ONLINE);
    assertThat(chat.model().tellNs()).isEqualTo(5_000);
    assertThat(chat.model().lane()).isFalse();
    assertThat(chat.arrivals())
        .isEqualTo(new Arrivals.Bursts(1_000_000_000, 2_000_000_000, 5, 10_000_000));
    assertThat(chat.shape().sync()).isEqualTo(2);
    assertThat(chat.shape().kernelTime()).isInstanceOf(KernelTime.Mixed.class);
    Mix.Member batch = mix.tenants().get(2);
    assertThat(batch.joinNs()).isEqualTo(50_000_000_000L);
    assertThat(batch.model().cancelTakesNs()).isEqualTo(3_000_000);
    assertThat(batch.model().tellsInLumps()).isFalse();
  }

  @Test
  void commandLineGoesBeforeTheFile() throws Exception {
    Path file = directory.resolve("mix.json");
    Files.writeString(file, "{\"seed\": 3, \"tenants\": [" + jsonTenant() + "]}");
    Mix mix = MixFile.read(file, new MixFile.Overrides(9L, Duration.ofSeconds(5))).mix();
    assertThat(mix.seed()).isEqualTo(9);
    assertThat(mix.durationNs()).isEqualTo(5_000_000_000L);
  }

  private static String jsonTenant() {
    return "{\"name\": \"a\", \"arrivals\": \"closedLoop\", \"request\": {\"kernelTime\":"
        + " \"1ms\"}}";
  }

  @Test
  void jsonIsReadAndItsErrorsAreNamedToo() {
    assertRefused("{\n  \"tenants\": [\n    {\"nam\": 1}]}", 3, 5, "'name' is missing in a tenant");
    assertRefused("{\"tenants\": [" + jsonTenant() + "}", 1, 87, "not YAML or JSON");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "tenant: []|1|1|'tenants' is missing",
        "tenants: []|1|10|there is no tenant",
        "tenants: 7|1|10|'tenants' is not a list",
        "tenants: [7]|1|11|not a section",
        "polcy: 1\\ntenants: [ONE]|1|1|unknown key 'polcy' in a mix; known are name, seed",
        "durations: 1s\\ntenants: [ONE]|1|1|did you mean 'duration'?",
        "duration: -5s\\ntenants: [ONE]|1|11|a time is negative: 'duration' is -5s",
        "duration: 5\\ntenants: [ONE]|1|11|a time without a unit: '5'",
        "duration: 9999h\\ntenants: [ONE]|1|11|above a year",
        "duration: 3s\\nwarmUp: 3s\\ntenants: [ONE]|2|9|nothing is left to count",
        "seed: x\\ntenants: [ONE]|1|7|'seed' is not a whole number",
        "gpus: []\\ntenants: [ONE]|1|7|there are not 1 to 64 GPUs",
        "gpus: [{shortestTurn: -1ms}]\\ntenants: [ONE]|1|23|a time is negative",
        "gpus: [{longestTurn: 1us}]\\ntenants: [ONE]|1|8|shortest turn",
        "gpus: [{name: g}, {name: g}]\\ntenants: [ONE]|1|26|two GPUs are called 'g'",
        "tenants: [ONE, ONE]|1|79|two tenants are called 'a'",
        "tenants: [{name: a, gpu: g9, arrivals: closedLoop}]|1|26|there is no GPU 'g9'; there are",
        "tenants: [{name: a, policy: some, arrivals: closedLoop}]|1|29|'policy' is not one of best",
        "tenants: [{name: a, policy: burst, arrivals: closedLoop}]|1|11|'share' is missing",
        "tenants: [{name: a, share: 5, arrivals: closedLoop}]|1|28|best-effort tenant has no share",
        "tenants: [{name: a, policy: burst, share: 101, arrivals: closedLoop}]|1|43|from 1 to 100",
        "tenants: [{name: a, policy: burst, share: x, arrivals: closedLoop}]|1|43|from 1 to 100",
        "tenants: [{name: a, arrivals: {}}]|1|31|exactly one of closedLoop, poisson",
        "tenants: [{name: a, arrivals: often}]|1|31|is not closedLoop or a section: 'often'",
        "tenants: [{name: a, arrivals: {poisson: {rate: -1}}}]|1|48|'rate' is not a number from",
        "tenants: [{name: a, arrivals: {poisson: {rate: NaN}}}]|1|48|'rate' is not a number from",
        "tenants: [{name: a, arrivals: {interval: {every: 0s}}}]|1|50|too short",
        "tenants: [{name: a, arrivals: {trace: {file: no.csv}}}]|1|46|no.csv does not exist",
        "tenants: [{name: a, arrivals: {trace: {file: conv, from: 1h}}}]|1|39|no request of the"
            + " trace",
        "tenants: [{name: a, quota: 5, arrivals: closedLoop}]|1|28|not a memory size: '5'",
        "tenants: [{name: a, leave: 1s, join: 2s, arrivals: closedLoop}]|1|28|before it comes at 2"
            + " s",
        "tenants: [{name: a, leave: 1s, stay: 2s, arrivals: closedLoop}]|1|38|leave one out",
        "tenants: [{name: a, name: b}]|1|21|'name' stands here twice",
        "tenants: [{name: a, after: a, arrivals: closedLoop}]|1|28|a cycle: 'a' joins after itself",
        "tenants: [{name: a, after: b, arrivals: closedLoop}]|1|28|there is no tenant 'b'",
        "tenants: [ONE, {name: b, after: a, arrivals: closedLoop}]|1|89|'a' never leaves",
        "tenants: &t [*t]|1|14|a loop: *t stands within what it stands for",
        "tenants: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]|1|39|nested more than",
        "tenants: [ONE|1|70|not YAML or JSON",
        "a: b: c|1|5|not YAML or JSON",
        "? [x]\\n: 1|1|3|a key is not a word",
      })
  void everyMistakeIsNamedWithItsPlace(String text, int line, int column, String problem) {
    assertRefused(text.replace("\\n", "\n").replace("ONE", ONE), line, column, problem);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "kernels: 0, kernelTime: 1ms|from 1 to 1000000",
        "kernels: {from: 3, to: 2}, kernelTime: 1ms|'kernels' is not a number",
        "kernels: {base: 3}, kernelTime: 1ms|for arrivals of a trace",
        "kernels: 3|'kernelTime' is missing",
        "kernelTime: -1ms|a time is negative",
        "kernelTime: 0ms|too short",
        "kernelTime: {uniform: {from: 2ms, to: 1ms}}|'to' is below 'from'",
        "kernelTime: {lognormal: {median: 1ms}}|'sigma' is missing",
        "kernelTime: {mixed: []}|is not a time, or one of",
        "kernelTime: {gamma: 1}|unknown key 'gamma'",
        "kernelTime: 1ms, sync: -1|'sync' is not a whole number",
        "kernelTime: 1ms, hostTime: -1us|a time is negative",
      })
  void requestsThatMakeNoSenseAreRefused(String request, String problem) {
    assertThatThrownBy(
            () -> read("tenants: [{name: a, arrivals: closedLoop, request: {" + request + "}}]"))
        .isInstanceOf(UserException.class)
        .hasMessageContaining("mix.yaml, line 1, column ")
        .hasMessageContaining(problem);
  }

  @Test
  void loopsOfTenantsAreNamed() {
    assertRefused(
        """
        tenants:
          - {name: a, after: b, stay: 1s, arrivals: closedLoop}
          - {name: b, after: [c], stay: 1s, arrivals: closedLoop}
          - {name: c, after: a, stay: 1s, arrivals: closedLoop}
        """,
        4,
        22,
        "a cycle",
        "a, b, c, a");
  }

  @Test
  void sharesThatDoNotAddUpAreRefusedWhereTheyMeet() throws Exception {
    String text =
        """
        tenants:
          - {name: a, policy: burst, share: 60, leave: 10s, arrivals: closedLoop}
          - {name: o, policy: fixed, share: 100, class: offline, arrivals: closedLoop}
          - {name: b, policy: fixed, share: 50, class: online, join: JOIN, arrivals: closedLoop}
        """;
    assertThat(read(text.replace("JOIN", "10s")).mix().tenants()).hasSize(3);
    assertRefused(
        text.replace("JOIN", "9s"),
        4,
        37,
        "'b' is refused when it joins at 9 s",
        "110 percent",
        "a 60 %");
  }

  @Test
  void quotasThatDoNotFitAreRefused() throws Exception {
    String text =
        """
        gpus: [{memory: 10GiB, memoryOversubscription: PERCENT}]
        tenants:
          - {name: a, quota: 8GiB, arrivals: closedLoop}
          - {name: b, quota: 4GiB, class: offline, arrivals: closedLoop}
        """;
    assertThat(read(text.replace("PERCENT", "120")).mix().tenants()).hasSize(2);
    assertRefused(text.replace("PERCENT", "100"), 4, 22, "'b' is refused", "free on gpu=gpu0");
  }

  /** As in the pool: oversubscription never affects online tenants. */
  @Test
  void onlineQuotasNeverTakeMoreThanTheGpuHas() throws Exception {
    String text =
        """
        gpus: [{memory: 10GiB, memoryOversubscription: 200}]
        tenants:
          - {name: a, quota: 8GiB, class: online, arrivals: closedLoop}
          - {name: b, quota: 4GiB, class: CLASS, arrivals: closedLoop}
        """;
    assertThat(read(text.replace("CLASS", "nearline")).mix().tenants()).hasSize(2);
    assertRefused(text.replace("CLASS", "online"), 4, 22, "'b' is refused", "2GiB");
  }

  @Test
  void traceIsScaledAndCut() throws Exception {
    Files.writeString(
        directory.resolve("t.csv"),
        """
        TIMESTAMP,ContextTokens,GeneratedTokens
        2023-11-16 18:15:46.0,100,10
        2023-11-16 18:15:47.0,200,20
        2023-11-16 18:15:49.0,300,30
        """);
    String text =
        "tenants: [{name: a, arrivals: {trace: {file: t.csv, speed: 2, from: 500ms}},"
            + " request: {kernels: {base: 1, perContextToken: 0.01, perGeneratedToken: 1},"
            + " kernelTime: 1ms}}]";
    assertThat(read(text).mix().tenants().get(0).arrivals())
        .isEqualTo(
            new Arrivals.Recorded(
                List.of(
                    new Arrivals.Request(250_000_000, 23), new Arrivals.Request(1_250_000_000, 34)),
                0));
    Files.writeString(
        directory.resolve("t.csv"), "TIMESTAMP,ContextTokens,GeneratedTokens\nx,1,1\n");
    assertThatThrownBy(() -> read(text))
        .hasMessageContaining("mix.yaml, line 1, column 46: ")
        .hasMessageContaining("t.csv, line 2");
  }

  @Test
  void filesThatCannotBeReadAreNamed() throws Exception {
    assertThatThrownBy(() -> MixFile.read(directory.resolve("no"), MixFile.Overrides.NONE))
        .hasMessageContaining("no does not exist");
    assertThatThrownBy(() -> MixFile.read(directory, MixFile.Overrides.NONE))
        .hasMessageContaining("is a directory");
    assertThatThrownBy(() -> read("# nothing\n")).hasMessageContaining("is empty");
    assertThatThrownBy(() -> read("a".repeat(1 << 21))).hasMessageContaining("mebibyte");
    Path file = directory.resolve("binary");
    Files.write(file, new byte[] {(byte) 0xff, (byte) 0xfe, 0, 1});
    assertThatThrownBy(() -> MixFile.read(file, MixFile.Overrides.NONE))
        .hasMessageContaining("is not UTF-8");
    assertThatThrownBy(() -> read("\u0000")).isInstanceOf(UserException.class);
  }

  @Test
  @Timeout(30)
  void whatHasNoEndIsNotReadForEver() {
    Path zeros = Path.of("/dev/zero");
    assertThatThrownBy(() -> MixFile.read(zeros, MixFile.Overrides.NONE))
        .hasMessageContaining("mebibyte");
  }
}
