package dev.vgpu.k8s.scheduler;

import dev.vgpu.k8s.http.ApiFailures;
import dev.vgpu.k8s.names.GangName;
import dev.vgpu.k8s.scheduler.claim.KnownPods;
import io.fabric8.kubernetes.api.model.Binding;
import io.fabric8.kubernetes.api.model.BindingBuilder;
import io.fabric8.kubernetes.api.model.DeleteOptionsBuilder;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.ObjectMeta;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.Preconditions;
import io.fabric8.kubernetes.api.model.policy.v1.Eviction;
import io.fabric8.kubernetes.api.model.policy.v1.EvictionBuilder;
import io.fabric8.kubernetes.api.model.policy.v1.PodDisruptionBudget;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.Listable;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.BooleanSupplier;

/**
 * The scheduler's writes to and look-ups in the API. Safe for use by several threads; each call
 * blocks until the API server answers.
 */
public final class Cluster {
  private static final int TOO_MANY_REQUESTS = 429;

  private final KubernetesClient client;
  private final BooleanSupplier mayWrite;

  /**
   * Creates it.
   *
   * @param client sends the requests
   * @param mayWrite whether this process leads; otherwise, nothing is written
   */
  public Cluster(KubernetesClient client, BooleanSupplier mayWrite) {
    this.client = client;
    this.mayWrite = mayWrite;
  }

  private void requireLead() {
    if (!mayWrite.getAsBoolean()) {
      throw new KubernetesClientException("this process does not lead any more");
    }
  }

  /**
   * Adds annotations to a pod.
   *
   * @throws KubernetesClientException if the pod is gone, or another pod has its name
   */
  void annotate(Pod pod, Map<String, String> annotations) {
    requireLead();
    Pod patch =
        new PodBuilder()
            .withNewMetadata()
            .withName(pod.getMetadata().getName())
            .withNamespace(pod.getMetadata().getNamespace())
            .withUid(pod.getMetadata().getUid())
            .withAnnotations(annotations)
            .endMetadata()
            .build();
    client
        .pods()
        .inNamespace(pod.getMetadata().getNamespace())
        .withName(pod.getMetadata().getName())
        .patch(PatchContext.of(PatchType.JSON_MERGE), patch);
  }

  /**
   * Binds a pod to a node. The API server adds the binding's annotations to the pod in the same
   * write, and rejects the binding if the UID is another pod's.
   */
  void bind(String namespace, String name, String uid, String node, Map<String, String> notes) {
    requireLead();
    Binding binding =
        new BindingBuilder()
            .withNewMetadata()
            .withName(name)
            .withNamespace(namespace)
            .withUid(uid)
            .withAnnotations(notes)
            .endMetadata()
            .withNewTarget()
            .withApiVersion("v1")
            .withKind("Node")
            .withName(node)
            .endTarget()
            .build();
    String path = "/api/v1/namespaces/" + namespace + "/pods/" + name + "/binding";
    String ignored = client.raw(path, "POST", binding);
  }

  /**
   * Evicts a pod; disruption budgets are honoured.
   *
   * @throws KubernetesClientException if a budget forbids it, the pod is gone, or another pod has
   *     its name
   */
  void evict(Pod pod) {
    evict(pod, List.of());
  }

  /**
   * Tries whether a pod may be evicted now; it stays, and no budget is used.
   *
   * @throws KubernetesClientException as {@link #evict}
   */
  void tryEvict(Pod pod) {
    evict(pod, List.of("All"));
  }

  private void evict(Pod pod, List<String> dryRun) {
    requireLead();
    ObjectMeta meta = pod.getMetadata();
    Eviction eviction =
        new EvictionBuilder()
            .withNewMetadata()
            .withName(meta.getName())
            .withNamespace(meta.getNamespace())
            .endMetadata()
            .withDeleteOptions(
                new DeleteOptionsBuilder()
                    .withDryRun(dryRun)
                    .withPreconditions(new Preconditions(null, meta.getUid()))
                    .build())
            .build();
    String path =
        "/api/v1/namespaces/" + meta.getNamespace() + "/pods/" + meta.getName() + "/eviction";
    try {
      // Webhooks see the option of the query, and the deletion has that of the body.
      String ignored = client.raw(path + (dryRun.isEmpty() ? "" : "?dryRun=All"), "POST", eviction);
    } catch (KubernetesClientException e) {
      if (e.getCode() == TOO_MANY_REQUESTS) {
        throw new KubernetesClientException(
            "a disruption budget forbids it: " + meta.getNamespace() + "/" + meta.getName());
      }
      throw e;
    }
  }

  /** {@return the disruption budgets of a namespace} */
  List<PodDisruptionBudget> budgets(String namespace) {
    return client.policy().v1().podDisruptionBudget().inNamespace(namespace).list().getItems();
  }

  /**
   * Writes the status of a claim, unless the claim has changed since it was read.
   *
   * @throws KubernetesClientException if it has changed, or is gone
   */
  void status(ResourceClaim claim) {
    requireLead();
    ResourceClaim ignored = client.resource(claim).updateStatus();
  }

  /**
   * {@return whether a pod has no node, or is gone}
   *
   * @throws KubernetesClientException if the API server does not say
   */
  boolean isUnbound(Pod pod) {
    ObjectMeta meta = pod.getMetadata();
    Pod now = client.pods().inNamespace(meta.getNamespace()).withName(meta.getName()).get();
    return now == null
        || !now.getMetadata().getUid().equals(meta.getUid())
        || !KnownPods.isBound(now);
  }

  /**
   * Lists one object at most, because an informer would try again and again.
   *
   * @throws KubernetesClientException if these objects cannot be listed
   */
  static void requireShown(Listable<?> objects) {
    Object ignored = objects.list(new ListOptionsBuilder().withLimit(1L).build());
  }

  /** {@return how many pods a gang needs, according to its group object; empty if there is none} */
  OptionalInt size(String namespace, GangName gang) {
    int slash = gang.group().indexOf('/');
    ResourceDefinitionContext context =
        new ResourceDefinitionContext.Builder()
            .withGroup(gang.group().substring(0, slash))
            .withVersion(gang.group().substring(slash + 1))
            .withKind("PodGroup")
            .withPlural("podgroups")
            .withNamespaced(true)
            .build();
    try {
      GenericKubernetesResource group =
          client
              .genericKubernetesResources(context)
              .inNamespace(namespace)
              .withName(gang.name())
              .get();
      return group == null ? OptionalInt.empty() : size(group);
    } catch (KubernetesClientException e) {
      if (ApiFailures.isGone(e)) {
        return OptionalInt.empty();
      }
      throw e;
    }
  }

  private static OptionalInt size(GenericKubernetesResource group) {
    Object size = group.get("spec", "minMember");
    Object nativeSize = group.get("spec", "schedulingPolicy", "gang", "minCount");
    Object shortSize = group.get("spec", "gang", "minCount");
    Object found = size != null ? size : nativeSize != null ? nativeSize : shortSize;
    return found instanceof Number number && number.intValue() > 0
        ? OptionalInt.of(number.intValue())
        : OptionalInt.empty();
  }
}
