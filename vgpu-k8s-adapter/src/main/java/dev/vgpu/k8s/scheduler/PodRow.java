package dev.vgpu.k8s.scheduler;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.names.PodRefusedException;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.names.PodRequests;
import dev.vgpu.k8s.scheduler.claim.ClaimConditions;
import dev.vgpu.k8s.scheduler.claim.ClaimNeed;
import dev.vgpu.k8s.scheduler.claim.KnownPods;
import dev.vgpu.k8s.scheduler.line.Place;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodCondition;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceRequestAllocationResult;
import io.fabric8.kubernetes.api.model.resource.v1.OpaqueDeviceConfiguration;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.stream.Stream;

/**
 * What a pod holds, or what it waits for. Texts that do not apply are empty. Immutable.
 *
 * @param node the pod's node; empty while it waits
 * @param namespace the pod's namespace
 * @param pod the pod's name
 * @param request {@code claim NAME}, or the system in whose words the pod requests
 * @param count how many GPUs, or parts of them
 * @param share what it gets of each, for example {@code 30%} or {@code whole}
 * @param memory its quota on each
 * @param policy how the share binds
 * @param preemptionClass the class
 * @param gpus the GPUs, by UUID or by the name of their DRA device
 * @param why why it waits, or was refused
 */
@JsonInclude(JsonInclude.Include.NON_EMPTY)
record PodRow(
    String node,
    String namespace,
    String pod,
    String request,
    int count,
    String share,
    String memory,
    String policy,
    @JsonProperty("class") String preemptionClass,
    List<String> gpus,
    String why) {
  private static final ObjectMapper JSON = new ObjectMapper();

  PodRow {
    gpus = List.copyOf(gpus);
  }

  /**
   * {@return a row for each pod and claim that requests GPUs of vgpu: first those that have a node,
   * then those that wait; without pods that have ended}
   */
  static List<PodRow> of(Collection<Pod> pods, Collection<ResourceClaim> claims) {
    Map<String, ResourceClaim> byName = new HashMap<>();
    claims.forEach(
        one ->
            byName.put(one.getMetadata().getNamespace() + "/" + one.getMetadata().getName(), one));
    return KnownPods.of(pods).byUid().values().stream()
        .flatMap(pod -> Stream.concat(ofWords(pod), ofClaims(pod, byName)))
        .sorted(
            Comparator.comparing((PodRow row) -> row.node.isEmpty())
                .thenComparing(PodRow::node)
                .thenComparing(PodRow::namespace)
                .thenComparing(PodRow::pod)
                .thenComparing(PodRow::request))
        .toList();
  }

  private static Stream<PodRow> ofWords(Pod pod) {
    try {
      return PodRequests.of(pod).map(asked -> row(pod, asked)).stream();
    } catch (PodRefusedException e) {
      return Stream.of(
          new PodRow(
              node(pod),
              pod.getMetadata().getNamespace(),
              pod.getMetadata().getName(),
              "",
              0,
              "",
              "",
              "",
              "",
              List.of(),
              "refused: " + e.getMessage()));
    }
  }

  private static PodRow row(Pod pod, PodRequest asked) {
    String memory = asked.memory().toString();
    if (asked.isWhole()) {
      memory = "";
    } else if (asked.memoryPercent() > 0) {
      memory = plain(BigDecimal.valueOf(asked.memoryPercent())) + "%";
    }
    String share = asked.sharePercent() == 0 ? "" : asked.sharePercent() + "%";
    boolean isWaiting = node(pod).isEmpty();
    return new PodRow(
        node(pod),
        pod.getMetadata().getNamespace(),
        pod.getMetadata().getName(),
        asked.system(),
        asked.gpus(),
        asked.isWhole() ? "whole" : share,
        memory,
        PodRequests.text(asked.policy()),
        PodRequests.text(asked.preemptionClass()),
        isWaiting ? List.of() : Place.of(pod).map(one -> one.place().ids()).orElse(List.of()),
        isWaiting ? reason(pod) : "");
  }

  private static Stream<PodRow> ofClaims(Pod pod, Map<String, ResourceClaim> byName) {
    List<PodRow> rows = new ArrayList<>();
    for (String name : KnownPods.claimNames(pod)) {
      ResourceClaim claim = byName.get(name);
      if (claim == null) {
        continue; // the pod's condition says so, if it is missing
      }
      List<DeviceRequestAllocationResult> devices = ClaimConditions.devices(claim);
      for (ClaimNeed need : ClaimNeed.of(List.of(claim))) {
        rows.add(row(pod, claim, need, devices));
      }
      if (ClaimNeed.isForParts(claim)) {
        rows.add(ofParts(pod, claim, devices));
      }
    }
    return rows.stream();
  }

  /** A part has no share and no quota: its name tells its profile. */
  private static PodRow ofParts(
      Pod pod, ResourceClaim claim, List<DeviceRequestAllocationResult> devices) {
    return new PodRow(
        node(pod),
        pod.getMetadata().getNamespace(),
        pod.getMetadata().getName(),
        "claim " + claim.getMetadata().getName(),
        1,
        "part",
        "",
        "",
        "",
        devices.stream().map(DeviceRequestAllocationResult::getDevice).toList(),
        why(pod, devices));
  }

  private static String why(Pod pod, List<DeviceRequestAllocationResult> devices) {
    return !node(pod).isEmpty()
        ? ""
        : devices.isEmpty() ? reason(pod) : "its claim has devices; the pod is not bound yet";
  }

  private static PodRow row(
      Pod pod, ResourceClaim claim, ClaimNeed need, List<DeviceRequestAllocationResult> devices) {
    OptionalLong memory = need.ask().memory();
    for (DeviceRequestAllocationResult one : devices) {
      Map<String, Quantity> consumed = one.getConsumedCapacity();
      OptionalLong known = ClaimNeed.amount(consumed, Driver.MEMORY);
      memory = known.isPresent() ? known : memory;
    }
    return new PodRow(
        node(pod),
        pod.getMetadata().getNamespace(),
        pod.getMetadata().getName(),
        "claim " + claim.getMetadata().getName(),
        (int) need.count(),
        need.ask().share() + "%",
        memory.isPresent() ? MemorySize.ofBytes(memory.getAsLong()).toString() : "all",
        parameter(claim, "policy", PodRequests.text(SharePolicy.FIXED_SHARE)),
        parameter(claim, "class", PodRequests.text(PreemptionClass.NEARLINE)),
        devices.stream().map(DeviceRequestAllocationResult::getDevice).toList(),
        why(pod, devices));
  }

  /**
   * {@return a parameter as the class and the claim say it; the claim's comes last, and counts} A
   * claim without devices does not tell its class's parameters.
   */
  private static String parameter(ResourceClaim claim, String name, String otherwise) {
    boolean isWaiting = ClaimConditions.devices(claim).isEmpty();
    Stream<OpaqueDeviceConfiguration> configurations =
        isWaiting
            ? claim.getSpec().getDevices().getConfig().stream().map(one -> one.getOpaque())
            : claim.getStatus().getAllocation().getDevices().getConfig().stream()
                .map(one -> one.getOpaque());
    return configurations
        .filter(one -> one != null && Driver.NAME.equals(one.getDriver()))
        .map(one -> JSON.<JsonNode>valueToTree(one.getParameters()))
        .map(one -> one.path(name).asText())
        .filter(one -> !one.isEmpty())
        .reduce((first, second) -> second)
        .orElse(isWaiting ? "" : otherwise);
  }

  private static String plain(BigDecimal number) {
    return number.stripTrailingZeros().toPlainString();
  }

  private static String node(Pod pod) {
    return Objects.requireNonNullElse(pod.getSpec().getNodeName(), "");
  }

  private static String reason(Pod pod) {
    List<PodCondition> conditions =
        pod.getStatus() == null || pod.getStatus().getConditions() == null
            ? List.of()
            : pod.getStatus().getConditions();
    return conditions.stream()
        .filter(one -> "PodScheduled".equals(one.getType()) && one.getMessage() != null)
        .map(PodCondition::getMessage)
        .findFirst()
        .orElse("not looked at yet");
  }
}
