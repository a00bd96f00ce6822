package dev.vgpu.k8s.names;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.fleet.model.Request;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.client.utils.KubernetesSerialization;
import java.io.InputStream;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** One manifest for each system in its documented form, and what is refused. */
class PodRequestsTest {
  private static PodRequest read(String name) {
    InputStream file = PodRequestsTest.class.getResourceAsStream("/manifests/" + name + ".yaml");
    return PodRequests.of(new KubernetesSerialization().unmarshal(file, Pod.class)).orElseThrow();
  }

  private static Pod pod(Map<String, String> limits, Map<String, String> annotations) {
    PodBuilder pod =
        new PodBuilder().withNewMetadata().withName("p").withNamespace("d").endMetadata();
    return pod.editMetadata()
        .withUid("u")
        .withAnnotations(annotations)
        .endMetadata()
        .withNewSpec()
        .addNewContainer()
        .withName("main")
        .withNewResources()
        .withLimits(quantities(limits))
        .endResources()
        .endContainer()
        .endSpec()
        .build();
  }

  private static Map<String, Quantity> quantities(Map<String, String> limits) {
    Map<String, Quantity> all = new java.util.HashMap<>();
    limits.forEach((name, amount) -> all.put(name, new Quantity(amount)));
    return all;
  }

  private static PodRequest of(Map<String, String> limits, Map<String, String> annotations) {
    return PodRequests.of(pod(limits, annotations)).orElseThrow();
  }

  @Test
  void ours() {
    PodRequest asked = read("vgpu");
    assertThat(asked.system()).isEqualTo("vgpu");
    assertThat(asked.container()).isEqualTo("main");
    assertThat(asked.sharePercent()).isEqualTo(30);
    assertThat(asked.memory()).isEqualTo(MemorySize.ofGibibytes(8));
    assertThat(asked.policy()).isEqualTo(SharePolicy.BURST_SHARE);
    assertThat(asked.preemptionClass()).isEqualTo(PreemptionClass.ONLINE);
    assertThat(asked.gang()).contains(new GangName("ring", 4, ""));
    assertThat(asked.runS()).isEqualTo(3600);
  }

  @Test
  void aPodOfAnySystemMayNameThePodWhoseNodeItMustShare() {
    Map<String, String> notes = Map.of("vgpu.dev/same-node-as", "db-0");
    PodRequest asked = of(Map.of("aliyun.com/gpu-mem", "8"), notes);
    assertThat(asked.sameNodeAs()).isEqualTo("d/db-0");
    assertThat(of(Map.of("aliyun.com/gpu-mem", "8"), Map.of()).sameNodeAs()).isEmpty();
    assertThat(asked.onFleet("p", 0, MemorySize.ZERO, Set.of(), Set.of(), "uid").sameNodeAs())
        .isEqualTo("uid");
  }

  /** Other systems' schedulers read it so, and no group object has such a name. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "pod-group-name",
        "scheduling.k8s.io/group-name",
        "vgpu.dev/gang",
        "gang.scheduling.koordinator.sh/name"
      })
  void anEmptyNameIsNoGang(String name) {
    assertThat(of(Map.of("aliyun.com/gpu-mem", "8"), Map.of(name, "")).gang()).isEmpty();
  }

  /** In the forms of the API server and kube-scheduler. */
  @Test
  void kubernetesOwnPodGroupIsAGang() {
    Pod asking = pod(Map.of("vgpu.dev/slot", "1"), Map.of("vgpu.dev/memory", "1Gi"));
    String text = new KubernetesSerialization().asJson(asking);
    Pod told =
        new KubernetesSerialization()
            .unmarshal(
                text.replace(
                    "\"spec\":{", "\"spec\":{\"schedulingGroup\":{\"podGroupName\":\"own\"},"),
                Pod.class);
    assertThat(PodRequests.of(told).orElseThrow().gang())
        .contains(new GangName("own", 0, "scheduling.k8s.io/v1alpha2"));
  }

  @Test
  void gpushareIsMemoryAlone() {
    PodRequest asked = read("gpushare");
    assertThat(asked.memory()).isEqualTo(MemorySize.ofGibibytes(3));
    assertThat(asked.sharePercent()).isZero();
    assertThat(asked.policy()).isEqualTo(SharePolicy.BEST_EFFORT);
    assertThat(asked.runS()).isInfinite();
  }

  @Test
  void gpuManagerCountsMemoryIn256Mebibytes() {
    PodRequest asked = read("gpu-manager");
    assertThat(asked.memory()).isEqualTo(MemorySize.ofMebibytes(7680));
    assertThat(asked.sharePercent()).isEqualTo(50);
    assertThat(asked.policy()).isEqualTo(SharePolicy.BURST_SHARE);
    PodRequest fixed =
        of(Map.of("tencent.com/vcuda-core", "20", "tencent.com/vcuda-memory", "4"), Map.of());
    assertThat(fixed.policy()).isEqualTo(SharePolicy.FIXED_SHARE);
    PodRequest wholes = of(Map.of("tencent.com/vcuda-core", "200"), Map.of());
    assertThat(wholes.isWhole()).isTrue();
    assertThat(wholes.gpus()).isEqualTo(2);
  }

  @Test
  void greedyCoresOfQgpuAreOffline() {
    PodRequest asked = read("qgpu");
    assertThat(asked.preemptionClass()).isEqualTo(PreemptionClass.OFFLINE);
    assertThat(asked.sharePercent()).isEqualTo(30);
    assertThat(asked.memory()).isEqualTo(MemorySize.ofGibibytes(5));
  }

  @Test
  void multiplesOf100CoresOfQgpuAreWholeGpus() {
    PodRequest one = read("qgpu-whole");
    assertThat(one.isWhole()).isTrue();
    assertThat(one.gpus()).isEqualTo(1);
    assertThat(one.resources()).as("a node can give it").containsOnly(KubeletResource.QGPU_CORE);
    PodRequest two = of(Map.of("tke.cloud.tencent.com/qgpu-core", "200"), Map.of());
    assertThat(two.isWhole()).isTrue();
    assertThat(two.gpus()).isEqualTo(2);
  }

  /** https://cloud.tencent.com/document/product/457/127667 has these two, with the results. */
  @Test
  void otherNumbersAbove100CoresOfQgpuAreEqualPartsOfSeveralGpus() {
    PodRequest even = read("qgpu-cards");
    assertThat(even.gpus()).isEqualTo(2);
    assertThat(even.isWhole()).isFalse();
    assertThat(even.sharePercent()).isEqualTo(80);
    assertThat(even.memory()).isEqualTo(MemorySize.ofGibibytes(30));
    PodRequest odd =
        of(
            Map.of(
                "tke.cloud.tencent.com/qgpu-core", "121",
                "tke.cloud.tencent.com/qgpu-memory", "31"),
            Map.of());
    assertThat(odd.gpus()).isEqualTo(2);
    assertThat(odd.sharePercent()).isEqualTo(60);
    assertThat(odd.memory()).isEqualTo(MemorySize.ofGibibytes(15));
  }

  @Test
  void coresOfQgpuBelowAGpuComeWithTheirMemory() {
    PodRequest asked = read("qgpu-share");
    assertThat(asked.sharePercent()).isEqualTo(30);
    assertThat(asked.memory()).isEqualTo(MemorySize.ofGibibytes(5));
    assertThat(asked.resources()).containsOnly(KubeletResource.QGPU);
  }

  @Test
  void hamiCountsMebibytesOfEachGpu() {
    PodRequest asked = read("hami");
    assertThat(asked.gpus()).isEqualTo(2);
    assertThat(asked.memory()).isEqualTo(MemorySize.ofMebibytes(3000));
    assertThat(asked.sharePercent()).isEqualTo(30);
    assertThat(asked.models()).isEqualTo(Set.of("A100", "V100"));
    assertThat(asked.preemptionClass()).isEqualTo(PreemptionClass.ONLINE);
    PodRequest wholes = of(Map.of("nvidia.com/gpu", "2"), Map.of());
    assertThat(wholes.isWhole()).isTrue();
    assertThat(of(Map.of("nvidia.com/gpucores", "30"), Map.of()).memoryPercent()).isEqualTo(100);
  }

  /** HAMi's users write A100, and a node says NVIDIA A100-SXM4-80GB. */
  @Test
  void aWordOfAModelsNameStandsForTheModel() {
    Set<String> present =
        Set.of("NVIDIA A100-SXM4-80GB", "NVIDIA-A100-PCIE-40GB", "NVIDIA A10", "Tesla T4");
    Request asked = read("hami").onFleet("hami", 0, MemorySize.ZERO, Set.of(), present, "");
    assertThat(asked.shape().models())
        .as("V100 is not there, and A10 is another model")
        .containsExactlyInAnyOrder("NVIDIA A100-SXM4-80GB", "NVIDIA-A100-PCIE-40GB", "V100");
  }

  @Test
  void volcanoNamesItsGang() {
    PodRequest asked = read("volcano");
    assertThat(asked.sharePercent()).isEqualTo(50);
    assertThat(asked.gang()).contains(new GangName("job-1", 0, "scheduling.volcano.sh/v1beta1"));
  }

  @Test
  void koordinatorNamesQualityAndGang() {
    PodRequest asked = read("koordinator");
    assertThat(asked.sharePercent()).isEqualTo(50);
    assertThat(asked.memoryPercent()).isEqualTo(40);
    assertThat(asked.preemptionClass()).isEqualTo(PreemptionClass.OFFLINE);
    assertThat(asked.gang()).contains(new GangName("gang-a", 5, ""));
    PodRequest two =
        of(
            Map.of(
                "koordinator.sh/gpu.shared", "2",
                "koordinator.sh/gpu-core", "100",
                "koordinator.sh/gpu-memory", "16Gi"),
            Map.of());
    assertThat(two.gpus()).isEqualTo(2);
    assertThat(two.sharePercent()).isEqualTo(50);
    assertThat(two.memory()).isEqualTo(MemorySize.ofGibibytes(8));
  }

  @Test
  void aFractionOfKaiIsShareAndMemory() {
    PodRequest asked = read("kai");
    assertThat(asked.sharePercent()).isEqualTo(50);
    assertThat(asked.memoryPercent()).isEqualTo(50);
    assertThat(asked.preemptionClass()).isEqualTo(PreemptionClass.ONLINE);
    assertThat(asked.gang()).contains(new GangName("pg-1", 0, "scheduling.run.ai/v2alpha2"));
  }

  /** KAI takes any number between 0 and 1. Memory is exact, and a share is whole percents. */
  @ParameterizedTest
  @CsvSource({"0.125, 12, 12.5", "0.333, 33, 33.3", "0.005, 1, 0.5", "0.999, 99, 99.9"})
  void aFractionOfKaiMayBeFinerThanAPercent(String fraction, int share, double memoryPercent) {
    PodRequest asked = of(Map.of("cpu", "1"), Map.of("gpu-fraction", fraction));
    assertThat(asked.sharePercent()).isEqualTo(share);
    assertThat(asked.memoryPercent()).isEqualTo(memoryPercent);
  }

  /** A request is what KAI schedules; a limit alone is a request too. */
  @Test
  void memoryOfKaiMayNameItsContainer() {
    PodRequest asked = read("kai-named");
    assertThat(asked.container()).isEqualTo("main");
    assertThat(asked.memory()).isEqualTo(MemorySize.ofMebibytes(512));
    assertThat(asked.policy()).isEqualTo(SharePolicy.BEST_EFFORT);
    assertThat(asked.resources()).containsOnly(KubeletResource.SLOT);
    PodRequest limit =
        of(Map.of("cpu", "1"), Map.of("nvidia.com/container.main.gpu-memory.limit", "3Gi"));
    assertThat(limit.memory()).isEqualTo(MemorySize.ofGibibytes(3));
  }

  @Test
  void memoryOfKaiIsOfEachDevice() {
    PodRequest memory = read("kai-memory");
    assertThat(memory.policy()).isEqualTo(SharePolicy.BEST_EFFORT);
    assertThat(memory.gpus()).isEqualTo(2);
    assertThat(memory.memory()).isEqualTo(MemorySize.ofMebibytes(2000));
    assertThat(memory.preemptionClass()).as("the label says train").isEqualTo(OFFLINE);
  }

  @Test
  void aFractionOfKaiIsForTheContainerThatThePodNames() {
    PodRequest asked = read("kai-share");
    assertThat(asked.container()).isEqualTo("main");
    assertThat(asked.resources()).containsOnly(KubeletResource.SLOT);
    PodRequest sidecar = read("kai-sidecar");
    assertThat(sidecar.container()).isEqualTo("gpu-side");
    assertThat(sidecar.resources()).containsOnly(KubeletResource.SLOT);
  }

  /** KAI's examples have the label; its pods of whole GPUs have no other word of KAI than these. */
  @Test
  void theLabelsOfKaiAreTheClassOfWholeGpusToo() {
    assertThat(read("kai-whole").preemptionClass()).isEqualTo(OFFLINE);
    assertThat(kai("priorityClassName=train,kai.scheduler/preemptibility=non-preemptible"))
        .isEqualTo(NEARLINE);
    assertThat(kai("priorityClassName=train,kai.scheduler/preemptibility=semi-preemptible"))
        .isEqualTo(NEARLINE);
    assertThat(kai("priorityClassName=inference,kai.scheduler/preemptibility=preemptible"))
        .isEqualTo(OFFLINE);
    assertThat(kai("priorityClassName=inference,kai.scheduler/preemptibility=non-preemptible"))
        .isEqualTo(ONLINE);
    assertThat(kai("priorityClassName=train,kai.scheduler/preemptibility=perhaps"))
        .as("KAI falls back to the priority")
        .isEqualTo(OFFLINE);
    assertThat(kai("runai/queue=team,priorityClassName=inference")).isEqualTo(ONLINE);
    Pod other = pod(Map.of("nvidia.com/gpu", "1"), Map.of());
    other.getMetadata().setLabels(Map.of("priorityClassName", "train"));
    assertThat(PodRequests.of(other).orElseThrow().preemptionClass())
        .as("it is in no queue of KAI")
        .isEqualTo(NEARLINE);
  }

  private static PreemptionClass kai(String labels) {
    Pod pod = pod(Map.of("nvidia.com/gpu", "1"), Map.of());
    Map<String, String> all = map(labels);
    all.putIfAbsent("kai.scheduler/queue", "team-a");
    pod.getMetadata().setLabels(all);
    return PodRequests.of(pod).orElseThrow().preemptionClass();
  }

  /** The site's pages on migrating from another system show both manifests. */
  @ParameterizedTest
  @ValueSource(strings = {"gpushare", "gpu-manager", "qgpu", "hami", "volcano"})
  void theManifestInOurWordsAsksTheSame(String system) {
    PodRequest before = read("coming-from/" + system);
    PodRequest after = read("coming-from/" + system + "-vgpu");
    assertThat(before.system()).isNotEqualTo("vgpu");
    assertThat(after.system()).isEqualTo("vgpu");
    assertThat(after)
        .usingRecursiveComparison()
        .ignoringFields("system", "resources")
        .isEqualTo(before);
  }

  @Test
  void aPodWithoutGpusAsksNothing() {
    assertThat(PodRequests.of(pod(Map.of("cpu", "1"), Map.of()))).isEmpty();
  }

  /** NVIDIA's device plugin may give it, on a node of its own. */
  @Test
  void aMigProfileAloneIsNotForVgpu() {
    assertThat(PodRequests.of(pod(Map.of("nvidia.com/mig-1g.5gb", "1"), Map.of()))).isEmpty();
  }

  @Test
  void aStrictGangThatIsAGroupByItselfIsAGang() {
    String koordinator = "gang.scheduling.koordinator.sh/";
    PodRequest asked =
        of(
            Map.of("aliyun.com/gpu-mem", "3"),
            Map.of(
                koordinator + "name", "a",
                koordinator + "min-available", "2",
                koordinator + "mode", "Strict",
                koordinator + "groups", "[\"d/a\"]"));
    assertThat(asked.gang()).contains(new GangName("a", 2, ""));
  }

  @Test
  void classAndPolicyOfOursGoWithTheWordsOfOthers() {
    PodRequest asked = of(Map.of("aliyun.com/gpu-mem", "3"), Map.of("vgpu.dev/class", "offline"));
    assertThat(asked.preemptionClass()).isEqualTo(PreemptionClass.OFFLINE);
  }

  /** With NVIDIA's resource alone too, which HAMi's users write for whole GPUs. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "nvidia.com/gpu=1 | nvidia.com/use-gputype | A100",
        "nvidia.com/gpu=1 | vgpu.dev/model | A100",
        "nvidia.com/gpu=1,nvidia.com/gpumem=3000 | vgpu.dev/model | A100",
        "volcano.sh/vgpu-number=1 | vgpu.dev/model | A100",
        "aliyun.com/gpu-mem=3 | vgpu.dev/model | A100",
        "koordinator.sh/gpu=100 | vgpu.dev/model | A100",
        "vgpu.dev/slot=1,vgpu.dev/memory=8Gi | vgpu.dev/model | A100",
      })
  void aModelThatAPodNamesIsAsked(String limits, String note, String model) {
    PodRequest asked = of(map(limits), Map.of(note, " " + model + ", V100"));
    assertThat(asked.models()).containsExactlyInAnyOrder(model, "V100");
    Set<String> present = Set.of("NVIDIA A100-SXM4-80GB", "Tesla T4");
    assertThat(asked.onFleet("p", 0, MemorySize.ZERO, Set.of(), present, "").shape().models())
        .containsExactlyInAnyOrder("NVIDIA A100-SXM4-80GB", "V100");
  }

  @Test
  void thePriorityOfWholeGpusIsTheirClass() {
    Map<String, String> limits = Map.of("nvidia.com/gpu", "1", "nvidia.com/priority", "1");
    assertThat(of(limits, Map.of()).preemptionClass()).isEqualTo(PreemptionClass.OFFLINE);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "vgpu.dev/share=0,vgpu.dev/memory=8Gi | | 1 to 100: asked 0",
        "vgpu.dev/share=101,vgpu.dev/memory=8Gi | | 1 to 100: asked 101",
        "vgpu.dev/slot=1,vgpu.dev/share=30 | | needs memory",
        "vgpu.dev/memory=8 | | 64MiB to 1TiB would fit",
        "vgpu.dev/memory=8Gi | vgpu.dev/memory=9Gi | say it once",
        "vgpu.dev/memory=8Gi | vgpu.dev/policy=fixed-share | need one, 1 to 100",
        "vgpu.dev/share=30,vgpu.dev/memory=8Gi | vgpu.dev/policy=best-effort | promises no share",
        "vgpu.dev/share=30,vgpu.dev/memory=8Gi | vgpu.dev/class=urgent | [online, nearline,"
            + " offline]",
        "vgpu.dev/share=30,vgpu.dev/memory=8Gi | vgpu.dev/gang=a | needs vgpu.dev/gang-size",
        "vgpu.dev/memory=8Gi | vgpu.dev/same-node-as=p | which is the pod itself",
        "vgpu.dev/memory=8Gi | vgpu.dev/same-node-as=other/db | of one other pod of the namespace",
        "vgpu.dev/memory=8Gi | vgpu.dev/same-node-as=Db_0 | asked Db_0",
        "vgpu.dev/memory=8Gi | vgpu.dev/same-node-as=db,vgpu.dev/spread=g | leave out one",
        "aliyun.com/gpu-mem=8Gi | | counts units of 1GiB",
        "nvidia.com/gpu=1,nvidia.com/gpumem=8Gi | | 64 to 1048576",
        "nvidia.com/gpu=1,nvidia.com/gpumem=3 | | counts units of 1MiB: asked 3",
        "nvidia.com/gpu=1,nvidia.com/gpumem=3000,nvidia.com/gpumem-percentage=50 | | say one",
        "nvidia.com/gpu=1,nvidia.com/gpucores=101 | | 0 to 100",
        "nvidia.com/gpu=1 | gpu-fraction=0.5 | a pod asks one of",
        "tencent.com/vcuda-core=150 | | 100 or 200 would fit",
        "tencent.com/vcuda-core=50 | | units of 256 MiB",
        "tke.cloud.tencent.com/qgpu-core=30,tke.cloud.tencent.com/qgpu-memory=5 | "
            + "tke.cloud.tencent.com/app-class=offline | contradicts",
        "aliyun.com/gpu-mem=3,volcano.sh/vgpu-memory=3000 | | use those of one",
        "koordinator.sh/gpu=50,koordinator.sh/gpu-core=50 | | say one form",
        "nvidia.com/gpu=1 | nvidia.com/nouse-gputype=T4 | name the models that will do",
        "nvidia.com/gpu=1 | nvidia.com/vgpu-mode=mig | nvidia.com/vgpu-mode is mig",
        "nvidia.com/gpu=1,nvidia.com/mig-1g.5gb=1 | | [nvidia.com/mig-1g.5gb] are MIG profiles",
        "vgpu.dev/slot=1,vgpu.dev/memory=8Gi,nvidia.com/mig-2g.10gb=1 | | claim a device of the class mig.vgpu.dev",
        "vgpu.dev/memory=8Gi | gang.scheduling.koordinator.sh/name=a,"
            + "gang.scheduling.koordinator.sh/min-available=2,"
            + "gang.scheduling.koordinator.sh/mode=NonStrict | mode is NonStrict",
        "vgpu.dev/memory=8Gi | gang.scheduling.koordinator.sh/name=a,"
            + "gang.scheduling.koordinator.sh/min-available=2,"
            + "gang.scheduling.koordinator.sh/groups=[\"d/b\"] | [d/b]",
        "nvidia.com/gpu=1 | nvidia.com/use-gputype=A100,vgpu.dev/model=V100 | leave out one",
        "nvidia.com/gpu=1,nvidia.com/priority=2 | | 0 for high or 1 for low",
        "koordinator.sh/gpu=150 | | 100 or 200 would fit",
        "cpu=1 | gpu-fraction=1.5 | above 0 and below 1",
        "cpu=1 | gpu-fraction=1 | above 0 and below 1",
        "cpu=1 | gpu-fraction=0 | above 0 and below 1",
        "vgpu.dev/slot=1 | vgpu.dev/memory=1e99999 | much too large or too small: 1e99999",
        "vgpu.dev/memory=8Gi | vgpu.dev/share=1e-99999 | much too large or too small: 1e-99999",
        "vgpu.dev/memory=1e99999 | | much too large or too small: 1e99999",
        "vgpu.dev/slot=1 | vgpu.dev/memory=1e999999999 | much too large or too small: 1e999999999",
        "vgpu.dev/memory=8Gi | vgpu.dev/gang=g,vgpu.dev/gang-size=1e99999 | much too large",
        "cpu=1 | gpu-fraction=0.5,nvidia.com/container.main.gpu-memory.request=2Gi | one of",
        "cpu=1 | gpu-memory=1024,nvidia.com/container.main.gpu-memory.request=2Gi | leave out one",
        "cpu=1 | nvidia.com/container.init.gpu-memory.limit=2Gi | names no container",
        "cpu=1 | nvidia.com/container.main.gpu-memory.request=1Gi,"
            + "nvidia.com/container.side.gpu-memory.request=1Gi | asked by [main, side]",
        "cpu=1 | gpu-fraction-num-devices=2 | needs gpu-fraction or gpu-memory",
        "cpu=1 | gpu-fraction=0.5,gpu-fraction-container-name=init | names no container",
        "tke.cloud.tencent.com/qgpu-core=160 | | 100 or 200 would fit",
        "tke.cloud.tencent.com/qgpu-core=160,tke.cloud.tencent.com/qgpu-memory=1 | | less than 1"
            + " for each GPU",
        "nvidia.com/gpu=1,nvidia.com/gpumem=3000,nvidia.com/priority=1 | "
            + "vgpu.dev/class=online | leave out one",
      })
  void whatNoGpuCanGiveIsRefusedWithWhatWould(String limits, String notes, String said) {
    assertThatThrownBy(() -> PodRequests.of(pod(map(limits), map(notes == null ? "" : notes))))
        .isInstanceOf(PodRefusedException.class)
        .hasMessageContaining(said);
  }

  private static Map<String, String> map(String text) {
    Map<String, String> all = new java.util.HashMap<>();
    for (String part : text.split(",", -1)) {
      if (!part.isBlank()) {
        all.put(
            part.substring(0, part.indexOf('=')).strip(),
            part.substring(part.indexOf('=') + 1).strip());
      }
    }
    return all;
  }
}
