package dev.vgpu.spring;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.availability.ApplicationAvailability;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;

/**
 * Opens the pool, acquires a virtual GPU for each model below {@code vgpu.models}, and ties them to
 * the lifecycle of the service. {@code vgpu.enabled=false} turns all of it off.
 */
@AutoConfiguration
@ConditionalOnProperty(name = "vgpu.enabled", matchIfMissing = true)
@EnableConfigurationProperties(VgpuProperties.class)
public class VgpuAutoConfiguration {
  /** Called by Spring. */
  public VgpuAutoConfiguration() {}

  /**
   * {@return the pool; a {@code GpuPool} bean of the application replaces it}
   *
   * @param properties the pool's settings
   */
  @Bean(destroyMethod = "close")
  @ConditionalOnMissingBean
  public GpuPool vgpuPool(VgpuProperties properties) {
    GpuPoolOptions options = PoolOptions.of(properties.pool());
    try {
      return GpuPool.open(options);
    } catch (IllegalArgumentException | IllegalStateException | VgpuException e) {
      throw VgpuStartException.ofOpening(e);
    }
  }

  /**
   * {@return the registrar that defines the beans of the models}
   *
   * @param environment the properties, before they are bound to beans
   */
  @Bean
  static ModelGpuRegistrar vgpuModels(Environment environment) {
    return new ModelGpuRegistrar(environment);
  }

  /** {@return the GPUs that are lost now} */
  @Bean
  static LostGpus vgpuLost() {
    return new LostGpus();
  }

  /**
   * {@return the bean that refuses traffic while a GPU of the models is lost}
   *
   * @param context the context to which the state is published
   * @param pool whose events are listened to
   * @param gpus the virtual GPUs of the models
   * @param lost the GPUs that are lost now
   * @param availability holds the state; created first, so that it receives each change first
   */
  @Bean
  GpuReadiness vgpuReadiness(
      ApplicationContext context,
      GpuPool pool,
      ObjectProvider<VirtualGpu> gpus,
      LostGpus lost,
      ObjectProvider<ApplicationAvailability> availability) {
    availability.ifAvailable(made -> {});
    return new GpuReadiness(context, pool, gpus, lost);
  }

  /**
   * {@return the bean that releases the virtual GPUs when no request is served any more}
   *
   * @param context whose end releases them
   * @param pool whose events are listened to
   * @param gpus the virtual GPUs of the models
   */
  @Bean
  GpuShutdown vgpuShutdown(
      ConfigurableApplicationContext context, GpuPool pool, ObjectProvider<VirtualGpu> gpus) {
    return new GpuShutdown(context, pool, gpus);
  }

  /** Beans that need the actuator. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(Endpoint.class)
  static class Actuator {
    /**
     * {@return the endpoint}
     *
     * @param pool the pool that it shows
     * @param properties the models that it explains
     */
    @Bean
    @ConditionalOnMissingBean
    VgpuEndpoint vgpuEndpoint(GpuPool pool, VgpuProperties properties) {
      return new VgpuEndpoint(pool, properties);
    }
  }
}
