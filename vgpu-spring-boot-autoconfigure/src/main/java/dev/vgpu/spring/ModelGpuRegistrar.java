package dev.vgpu.spring;

import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.AutowireCandidateQualifier;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.BeanDefinitionRegistryPostProcessor;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.Environment;

/**
 * Defines a bean for each model: a {@link VirtualGpu} whose qualifier is the model's name. The
 * bean's name is {@code vgpu-} plus the model's name, so that a model may share its name with a
 * bean of the application.
 */
final class ModelGpuRegistrar implements BeanDefinitionRegistryPostProcessor {
  private final Environment environment;

  ModelGpuRegistrar(Environment environment) {
    this.environment = environment;
  }

  @Override
  public void postProcessBeanDefinitionRegistry(BeanDefinitionRegistry registry) {
    for (String model : names(models(environment).keySet())) {
      registry.registerBeanDefinition("vgpu-" + model, definition(registry, model));
    }
  }

  /**
   * {@return the models' names} The name of an environment variable has no dashes: {@code
   * VGPU_MODELS_RERANK_MEMORY} is a property of {@code re-rank}, and to Spring also a model's.
   */
  private static Collection<String> names(Set<String> models) {
    Map<String, String> names = new LinkedHashMap<>();
    for (String model : models) {
      String plain = model.toLowerCase(Locale.ROOT).replace("-", "").replace("_", "");
      String other = names.get(plain);
      if (other == null) {
        names.put(plain, model);
      } else if (other.equalsIgnoreCase(model)) {
        throw sameName(model, other, "case");
      } else if (other.equals(plain)) {
        names.put(plain, model);
      } else if (!model.equals(plain)) {
        throw sameName(model, other, "case, '-' and '_'");
      }
    }
    return names.values();
  }

  private static VgpuStartException sameName(String model, String other, String difference) {
    return VgpuStartException.ofModel(
        model,
        "the model '" + other + "' has the same name but for " + difference,
        "Rename one of the two below vgpu.models.");
  }

  private static Map<String, VgpuProperties.Model> models(Environment environment) {
    return Binder.get(environment)
        .bind("vgpu.models", Bindable.mapOf(String.class, VgpuProperties.Model.class))
        .orElseGet(Map::of);
  }

  private static RootBeanDefinition definition(BeanDefinitionRegistry registry, String model) {
    BeanFactory beans = (BeanFactory) registry;
    RootBeanDefinition definition =
        new RootBeanDefinition(
            VirtualGpu.class,
            () -> {
              VgpuProperties.Model properties =
                  beans.getBean(VgpuProperties.class).models().get(model);
              if (properties == null) {
                throw new IllegalStateException("the properties of a model went: " + model);
              }
              VirtualGpu gpu = ModelGpus.acquire(beans.getBean(GpuPool.class), model, properties);
              return new ModelGpu(gpu, beans.getBean(LostGpus.class));
            });
    definition.addQualifier(new AutowireCandidateQualifier(Qualifier.class, model));
    definition.setDestroyMethodName("close");
    return definition;
  }

  @Override
  public void postProcessBeanFactory(ConfigurableListableBeanFactory beanFactory) {}
}
