package dev.vgpu.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class VirtualGpuRequestTest {
  private static final MemorySize MEMORY = MemorySize.ofMebibytes(512);

  private final VirtualGpuRequest.Builder builder = VirtualGpuRequest.builder();

  private static VirtualGpuRequest full() {
    return VirtualGpuRequest.builder()
        .name("embed")
        .computePercent(30)
        .memory(MEMORY)
        .policy(SharePolicy.FIXED_SHARE)
        .preemptionClass(PreemptionClass.ONLINE)
        .maxConcurrentCalls(4)
        .gpu(new GpuId("GPU-1"))
        .requires(Capabilities.builder().memory(Capabilities.Memory.EXACT).build())
        .backend("kmod")
        .part("3g.40gb:4")
        .failureMode(FailureMode.OPEN)
        .build();
  }

  @Test
  void onlyTheMemoryIsNeeded() {
    VirtualGpuRequest request = builder.memory(MEMORY).build();
    assertThat(request.memory()).isEqualTo(MEMORY);
    assertThat(request.name()).isEqualTo("vgpu");
    assertThat(request.computePercent()).isEmpty();
    assertThat(request.policy()).isEqualTo(SharePolicy.BEST_EFFORT);
    assertThat(request.preemptionClass()).isEqualTo(PreemptionClass.NEARLINE);
    assertThat(request.maxConcurrentCalls()).isEqualTo(VirtualGpuRequest.MAX_CONCURRENT_CALLS);
    assertThat(request.gpu()).isEmpty();
    assertThat(request.requires()).isEqualTo(Capabilities.builder().build());
    assertThat(request.failureMode()).isEqualTo(FailureMode.REFUSE);
  }

  @ParameterizedTest
  @ValueSource(ints = {Integer.MIN_VALUE, -1, 0, 101, Integer.MAX_VALUE})
  void percentOutOfRangeIsRefused(int percent) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.computePercent(percent))
        .withMessageContaining("1 to 100")
        .withMessageContaining("computePercent=" + percent);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 100})
  void percentAtTheBoundsIsTaken(int percent) {
    builder.policy(SharePolicy.BURST_SHARE).memory(MEMORY).computePercent(percent);
    assertThat(builder.build().computePercent()).hasValue(percent);
  }

  @Test
  void memoryMustBeSetAndAboveZero() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.memory(MemorySize.ZERO))
        .withMessageContaining("memory=0B");
    assertThatIllegalArgumentException()
        .isThrownBy(builder::build)
        .withMessageContaining("memory(...)");
  }

  @Test
  void bestEffortWithAShareIsRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.memory(MEMORY).computePercent(30).build())
        .withMessageContaining("best effort")
        .withMessageContaining("computePercent=30");
  }

  @ParameterizedTest
  @EnumSource(
      value = SharePolicy.class,
      names = {"FIXED_SHARE", "BURST_SHARE"})
  void shareWithoutAPercentIsRefused(SharePolicy policy) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.memory(MEMORY).policy(policy).build())
        .withMessageContaining("policy=" + policy)
        .withMessageContaining("computePercent");
  }

  @ParameterizedTest
  @ValueSource(strings = {"a", "7", "embed-3", "A.b_c-d"})
  void nameOfTheFormIsTaken(String name) {
    assertThat(builder.name(name).memory(MEMORY).build().name()).isEqualTo(name);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " ", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n"})
  void nameOfAnotherFormIsRefused(String name) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.name(name))
        .withMessageContaining("'" + name + "'");
  }

  @Test
  void nameHasAtMost63Characters() {
    assertThat(builder.name("n".repeat(63)).memory(MEMORY).build().name()).hasSize(63);
    assertThatIllegalArgumentException().isThrownBy(() -> builder.name("n".repeat(64)));
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 0, VirtualGpuRequest.MAX_CONCURRENT_CALLS + 1})
  void boundOnCallsOutOfRangeIsRefused(int bound) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.maxConcurrentCalls(bound))
        .withMessageContaining("maxConcurrentCalls=" + bound);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, VirtualGpuRequest.MAX_CONCURRENT_CALLS})
  void boundOnCallsAtTheBoundsIsTaken(int bound) {
    assertThat(builder.memory(MEMORY).maxConcurrentCalls(bound).build().maxConcurrentCalls())
        .isEqualTo(bound);
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 0, VirtualGpuRequest.MAX_GPU_COUNT + 1})
  void numberOfGpusOutOfRangeIsRefused(int count) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.gpuCount(count))
        .withMessageContaining("gpuCount=" + count);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, VirtualGpuRequest.MAX_GPU_COUNT})
  void numberOfGpusAtTheBoundsIsTaken(int count) {
    assertThat(builder.memory(MEMORY).gpuCount(count).build().gpuCount()).isEqualTo(count);
  }

  @Test
  void namedGpusAreAllThatItAsks() {
    GpuId first = new GpuId("GPU-1");
    GpuId second = new GpuId("GPU-2");
    VirtualGpuRequest both = builder.memory(MEMORY).gpus(List.of(second, first)).build();
    assertThat(both.gpuCount()).isEqualTo(2);
    assertThat(both.gpus()).containsExactly(second, first);
    assertThat(both.toBuilder().build().gpus()).isEqualTo(both.gpus());
    assertThat(both).asString().contains("gpus=[GPU-2, GPU-1]");
    assertThat(builder.gpu(first).gpuCount(3).build().gpus()).containsExactly(first);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.gpus(List.of(first, second)).gpuCount(1).build())
        .withMessageContaining("gpuCount=1");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.gpus(List.of(first, first)))
        .withMessageContaining("gpus=[GPU-1, GPU-1]");
    assertThatIllegalArgumentException().isThrownBy(() -> builder.gpus(List.of()));
  }

  @Test
  void movableMemoryIsForOneGpuAndOfflineWork() {
    builder.memory(MEMORY).memoryMobility(MemoryMobility.MOVABLE);
    assertThatIllegalArgumentException()
        .isThrownBy(builder::build)
        .withMessageContaining("preemptionClass=NEARLINE");
    builder.preemptionClass(PreemptionClass.OFFLINE);
    assertThat(builder.build().memoryMobility()).isEqualTo(MemoryMobility.MOVABLE);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.gpuCount(2).build())
        .withMessageContaining("gpuCount=2");
  }

  @ParameterizedTest
  @ValueSource(strings = {"3g.40gb", "3g.40gb:0", "1g.10gb+me:6", "1g.24gb-me", "2g.48gb+gfx:11"})
  void partOfTheFormIsTaken(String part) {
    VirtualGpuRequest request = builder.memory(MEMORY).part(part).build();
    assertThat(request.part()).contains(part);
    assertThat(request).asString().endsWith(" part=" + part);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", ":", ":4", "3g.40gb:", "3g.40gb:-1", "3g.40gb:100", "3g 40gb", "a:4:4"})
  void partOfAnotherFormIsRefused(String part) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.part(part))
        .withMessageContaining("'" + part + "' (PROFILE or PROFILE:START");
  }

  @Test
  void partIsOfOneGpuAndNeedsNoShare() {
    builder.memory(MEMORY).part(new GpuPart("3g.40gb", 4, 4, 3, MEMORY, 60).name());
    assertThat(builder.build().part()).contains("3g.40gb:4");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.gpuCount(2).build())
        .withMessageContaining("part=3g.40gb:4 gpuCount=2");
  }

  @Test
  void gpuAndBackendAreThoseAskedFor() {
    assertThat(full().gpu()).contains(new GpuId("GPU-1"));
    assertThat(full().backend()).contains("kmod");
    assertThat(builder.memory(MEMORY).build().backend()).isEmpty();
  }

  @Test
  void absentValuesAreRefused() {
    assertThatNullPointerException().isThrownBy(() -> builder.name(null)).withMessage("name");
    assertThatNullPointerException().isThrownBy(() -> builder.memory(null)).withMessage("memory");
    assertThatNullPointerException().isThrownBy(() -> builder.policy(null)).withMessage("policy");
    assertThatNullPointerException()
        .isThrownBy(() -> builder.preemptionClass(null))
        .withMessage("preemptionClass");
    assertThatNullPointerException().isThrownBy(() -> builder.gpu(null)).withMessage("gpu");
    assertThatNullPointerException().isThrownBy(() -> builder.backend(null)).withMessage("backend");
    assertThatNullPointerException().isThrownBy(() -> builder.part(null)).withMessage("part");
    assertThatNullPointerException()
        .isThrownBy(() -> builder.requires(null))
        .withMessage("requires");
    assertThatNullPointerException()
        .isThrownBy(() -> builder.failureMode(null))
        .withMessage("failureMode");
  }

  @Test
  void builderMadeFromARequestHoldsAllOfIt() {
    VirtualGpuRequest request = full();
    assertThat(request.toBuilder().build()).usingRecursiveComparison().isEqualTo(request);
    VirtualGpuRequest small = VirtualGpuRequest.builder().memory(MEMORY).build();
    assertThat(small.toBuilder().build()).usingRecursiveComparison().isEqualTo(small);
  }

  @Test
  void builderMadeFromARequestLeavesItAlone() {
    VirtualGpuRequest request = full();
    VirtualGpuRequest changed = request.toBuilder().name("other").computePercent(31).build();
    assertThat(changed.computePercent()).hasValue(31);
    assertThat(request).usingRecursiveComparison().isEqualTo(full());
  }

  @Test
  void builderMayBeUsedAgain() {
    VirtualGpuRequest first = builder.memory(MEMORY).name("first").build();
    VirtualGpuRequest second = builder.name("second").build();
    assertThat(first.name()).isEqualTo("first");
    assertThat(second.name()).isEqualTo("second");
    assertThat(second.memory()).isEqualTo(MEMORY);
  }

  @Test
  void bestEffortDropsTheShare() {
    VirtualGpuRequest request = full().toBuilder().bestEffort().build();
    assertThat(request.policy()).isEqualTo(SharePolicy.BEST_EFFORT);
    assertThat(request.computePercent()).isEmpty();
    assertThat(request.memory()).isEqualTo(MEMORY);
    assertThat(request.preemptionClass()).isEqualTo(PreemptionClass.ONLINE);
  }

  @Test
  void textNamesWhatIsAsked() {
    assertThat(full())
        .hasToString(
            "name=embed policy=FIXED_SHARE computePercent=30 memory=512MiB class=ONLINE gpu=GPU-1"
                + " backend=kmod part=3g.40gb:4");
    assertThat(builder.memory(MEMORY).build())
        .hasToString("name=vgpu policy=BEST_EFFORT memory=512MiB class=NEARLINE");
  }
}
