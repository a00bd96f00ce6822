package dev.vgpu.k8s.scheduler;

import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.util.Locale;

/** Group objects of gangs. */
final class PodGroups {
  private PodGroups() {}

  /** Creates a group object; its spec is a part of a flow mapping of YAML. */
  static void create(KubernetesClient api, String apiVersion, String name, String spec) {
    String text =
        String.format(
            Locale.ROOT,
            "apiVersion: %s\nkind: PodGroup\nmetadata: {name: %s}\nspec: {%s}\n",
            apiVersion,
            name,
            spec);
    int slash = apiVersion.indexOf('/');
    ResourceDefinitionContext context =
        new ResourceDefinitionContext.Builder()
            .withGroup(apiVersion.substring(0, slash))
            .withVersion(apiVersion.substring(slash + 1))
            .withKind("PodGroup")
            .withPlural("podgroups")
            .withNamespaced(true)
            .build();
    api.genericKubernetesResources(context)
        .inNamespace("default")
        .resource(Serialization.unmarshal(text, GenericKubernetesResource.class))
        .create();
  }
}
