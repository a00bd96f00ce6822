package dev.vgpu.k8s.names;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodSchedulingGroup;
import io.fabric8.kubernetes.api.model.Quantity;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Reads what pods request, in vgpu's or another system's vocabulary, from the manifest only. */
public final class PodRequests {
  /** The annotation that names the class. */
  public static final String CLASS = Driver.NAME + "/class";

  /** The annotation that names the policy. */
  public static final String POLICY = Driver.NAME + "/policy";

  /** The annotation that names the group whose pods must be on different nodes. */
  public static final String SPREAD = Driver.NAME + "/spread";

  /** The annotation that names the pod whose node this one must share. */
  public static final String SAME_NODE = Driver.NAME + "/same-node-as";

  /** The annotation that names the acceptable GPU models. */
  static final String MODEL = Driver.NAME + "/model";

  static final List<Vocabulary> VOCABULARIES =
      List.of(
          new OwnWords(),
          new GpushareWords(),
          new GpuManagerWords(),
          new QgpuWords(),
          VgpuCountWords.HAMI,
          VgpuCountWords.VOLCANO,
          new KoordinatorWords(),
          new KaiWords());

  /** NVIDIA's device plugin gives MIG instances by the names of their profiles. */
  private static final String MIG = "nvidia.com/mig-";

  private static final Pattern POD_NAME = Pattern.compile("[a-z0-9][a-z0-9.-]{0,252}");

  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int MOST_PERCENT = 100;

  private PodRequests() {}

  /**
   * {@return what a pod requests; empty if it requests no GPU}
   *
   * @param pod the pod
   * @throws PodRefusedException if no GPU can give that, or the request contradicts itself
   */
  public static Optional<PodRequest> of(Pod pod) {
    return PodView.together(pod, VgpuCountWords.HAMI_COUNT)
        .flatMap(PodRequests::wholes)
        .or(() -> read(pod));
  }

  /** {@return whole GPUs for several containers: only NVIDIA's device plugin can give those} */
  private static Optional<PodRequest> wholes(Pod together) {
    try {
      return read(together).filter(PodRequest::isWhole).map(PodRequest::withoutContainer);
    } catch (PodRefusedException e) {
      return Optional.empty();
    }
  }

  private static Optional<PodRequest> read(Pod pod) {
    PodView view = new PodView(pod);
    view.early().forEach(PodRequests::refuseWords);
    List<GpuPart> parts = new ArrayList<>();
    for (Vocabulary words : VOCABULARIES) {
      words.read(view).ifPresent(parts::add);
    }
    if (parts.size() > 1) {
      throw new PodRefusedException(
          "the pod asks in the words of "
              + parts.stream().map(GpuPart::system).toList()
              + ": use those of one");
    }
    List<String> profiles = view.asked(MIG);
    if (!parts.isEmpty() && !profiles.isEmpty()) {
      throw new PodRefusedException(
          profiles
              + " are MIG profiles beside the words of "
              + parts.get(0).system()
              + ", and vgpu places no MIG profile by that name: say the share and the memory instead,"
              + " leave the profile alone to NVIDIA's device plugin, or claim a device of the class "
              + Driver.MIG_CLASS);
    }
    return parts.stream().findFirst().map(part -> request(pod, view, part));
  }

  /** The kubelet does not tell which devices init containers have. */
  private static void refuseWords(PodView early) {
    List<String> names = early.asked("");
    if (VOCABULARIES.stream().anyMatch(words -> speaks(words, early))) {
      throw new PodRefusedException(
          names
              + " are asked by the init container "
              + early.asker(names)
              + ": vgpu gives GPUs to containers only; move the request to a container");
    }
  }

  private static boolean speaks(Vocabulary words, PodView view) {
    try {
      return words.read(view).isPresent();
    } catch (PodRefusedException e) {
      return true;
    }
  }

  /**
   * {@return whether a pod requests devices or the like, and none of them is vgpu's to give}
   *
   * @param pod the pod
   */
  public static boolean isOthers(Pod pod) {
    try {
      return of(pod).isEmpty() && new PodView(pod).asksAny();
    } catch (PodRefusedException e) {
      return false;
    }
  }

  /**
   * {@return the gang that a pod names, whether or not it requests GPUs in a vocabulary}
   *
   * @param pod the pod
   * @throws PodRefusedException if it names two gangs
   */
  public static Optional<GangName> gang(Pod pod) {
    return GangName.of(new PodView(pod), nativeGroup(pod));
  }

  /**
   * {@return what the scheduler has reserved for a pod; empty if nothing, or if that is not valid}
   * It counts for a pod that runs: the pod's owner can change what else the manifest says.
   *
   * @param pod the pod
   * @param said what its manifest says, which counts for the gang and for other pods' places
   */
  public static Optional<PodRequest> reserved(Pod pod, Optional<PodRequest> said) {
    Map<String, String> notes = pod.getMetadata().getAnnotations();
    String text = notes == null ? null : notes.get(Driver.RESERVATION);
    try {
      JsonNode all = JSON.readTree(text == null ? "{}" : text);
      return all.isObject() && all.size() == 1
          ? Optional.of(reserved(pod, said, all.fieldNames().next(), all.elements().next()))
          : Optional.empty();
    } catch (JsonProcessingException
        | PodRefusedException
        | IllegalArgumentException
        | ArithmeticException e) {
      return Optional.empty();
    }
  }

  private static PodRequest reserved(
      Pod pod, Optional<PodRequest> said, String container, JsonNode held) {
    int gpus = held.has("gpus") ? held.path("gpus").size() : 1;
    int share = held.path("share").asInt();
    boolean isWhole = held.path("whole").asBoolean();
    // In whole MiB, as the memory of nodes is counted: a part of a card may be no whole number.
    MemorySize memory =
        MemorySize.ofMebibytes(
            Quantity.getAmountInBytes(Quantity.parse(held.path("memory").asText("0")))
                    .longValueExact()
                / MemorySize.ofMebibytes(1).bytes());
    boolean isSome = isWhole || share > 0 || memory.bytes() > 0;
    if (gpus < 1 || gpus > NodeSpec.MOST_GPUS || share < 0 || share > MOST_PERCENT || !isSome) {
      throw new IllegalArgumentException("no such part of a GPU: " + held);
    }
    return new PodRequest(
        said.map(PodRequest::system).orElse("vgpu"),
        container,
        gpus,
        isWhole ? 0 : share,
        isWhole,
        memory,
        0,
        word(SharePolicy.class, POLICY, held.path("policy").asText()),
        word(PreemptionClass.class, CLASS, held.path("class").asText()),
        Set.of(),
        said.map(PodRequest::spread).orElse(""),
        said.map(PodRequest::sameNodeAs).orElse(""),
        runS(pod),
        said.flatMap(PodRequest::gang),
        said.map(PodRequest::resources).orElse(Set.of()));
  }

  private static double runS(Pod pod) {
    Long deadline = pod.getSpec().getActiveDeadlineSeconds();
    return deadline == null || deadline < 1 ? Double.POSITIVE_INFINITY : deadline;
  }

  private static PodRequest request(Pod pod, PodView view, GpuPart part) {
    Optional<SharePolicy> said =
        view.annotation(POLICY).map(text -> word(SharePolicy.class, POLICY, text));
    SharePolicy policy =
        agreed(POLICY, said, part.policy(), part)
            .orElse(
                part.isWhole() || part.sharePercent() > 0
                    ? SharePolicy.BURST_SHARE
                    : SharePolicy.BEST_EFFORT);
    Optional<PreemptionClass> named =
        view.annotation(CLASS).map(text -> word(PreemptionClass.class, CLASS, text));
    PreemptionClass preemptionClass =
        agreed(CLASS, named, part.preemptionClass(), part).orElse(PreemptionClass.NEARLINE);
    boolean isPromised = part.isWhole() || part.sharePercent() > 0;
    if (isPromised != (policy != SharePolicy.BEST_EFFORT)) {
      throw new PodRefusedException(
          POLICY
              + " is "
              + text(policy)
              + " and the share is "
              + part.sharePercent()
              + ": best-effort promises no share, fixed-share and burst-share need one, 1 to 100");
    }
    return new PodRequest(
        part.system(),
        part.container(),
        part.gpus(),
        part.sharePercent(),
        part.isWhole(),
        part.memory(),
        part.memoryPercent(),
        policy,
        preemptionClass,
        models(view, part),
        view.annotation(SPREAD)
            .map(group -> pod.getMetadata().getNamespace() + "/" + group)
            .orElse(""),
        sameNode(pod, view),
        runS(pod),
        GangName.of(view, nativeGroup(pod)),
        Stream.of(KubeletResource.values())
            .filter(one -> view.asker(one.resource()).equals(part.container()))
            .filter(one -> view.amount(one.resource()).map(one::gives).orElse(true))
            .collect(Collectors.toSet()));
  }

  /** {@return the pod whose node a pod must share, with its namespace; empty for none} */
  private static String sameNode(Pod pod, PodView view) {
    Optional<String> said = view.annotation(SAME_NODE);
    if (said.isEmpty()) {
      return "";
    }
    String name = said.get();
    if (!POD_NAME.matcher(name).matches()) {
      throw new PodRefusedException(
          SAME_NODE + " is the name of one other pod of the namespace, as db-0: asked " + name);
    }
    if (name.equals(pod.getMetadata().getName())) {
      throw new PodRefusedException(SAME_NODE + " is " + name + ", which is the pod itself");
    }
    if (view.annotation(SPREAD).isPresent()) {
      throw new PodRefusedException(
          SAME_NODE
              + " is "
              + name
              + " and "
              + SPREAD
              + " is "
              + view.annotation(SPREAD).get()
              + ": the other pod decides on the node; leave out one");
    }
    return pod.getMetadata().getNamespace() + "/" + name;
  }

  private static Set<String> models(PodView view, GpuPart part) {
    Set<String> said = view.annotation(MODEL).map(PodRequests::list).orElse(Set.of());
    if (!said.isEmpty() && !part.models().isEmpty() && !said.equals(part.models())) {
      throw new PodRefusedException(
          MODEL
              + " is "
              + said.stream().sorted().toList()
              + " and "
              + part.system()
              + "'s words say "
              + part.models().stream().sorted().toList()
              + ": leave out one");
    }
    return said.isEmpty() ? part.models() : said;
  }

  /** {@return the names of a list with commas} */
  static Set<String> list(String text) {
    return Stream.of(text.split(",", -1))
        .map(String::strip)
        .filter(one -> !one.isEmpty())
        .collect(Collectors.toSet());
  }

  private static <T extends Enum<T>> Optional<T> agreed(
      String name, Optional<T> said, Optional<T> read, GpuPart part) {
    if (said.isPresent() && read.isPresent() && !said.equals(read)) {
      throw new PodRefusedException(
          name
              + " is "
              + text(said.get())
              + " and "
              + part.system()
              + "'s words say "
              + text(read.get())
              + ": leave out one");
    }
    return said.isPresent() ? said : read;
  }

  private static <T extends Enum<T>> T word(Class<T> type, String name, String text) {
    for (T one : type.getEnumConstants()) {
      if (text(one).equals(text)) {
        return one;
      }
    }
    List<String> all = new ArrayList<>();
    for (T one : type.getEnumConstants()) {
      all.add(text(one));
    }
    throw new PodRefusedException(name + " is " + text + ": there are " + all);
  }

  /**
   * {@return a policy or class as it is written in annotations}
   *
   * @param value the value
   */
  public static String text(Enum<?> value) {
    return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** The gang of Kubernetes' own pod groups. */
  private static Optional<String> nativeGroup(Pod pod) {
    return Optional.ofNullable(pod.getSpec().getSchedulingGroup())
        .map(PodSchedulingGroup::getPodGroupName);
  }
}
